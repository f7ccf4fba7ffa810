from tiered.certify.certify_instrument import Certify as Certify
from tiered.certify.checker import Checker as Checker, Proof as Proof
from tiered.certify.rewrite_records import Certified as Certified, Findings as Findings

__all__: list[str]
