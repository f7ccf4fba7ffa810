from tiered.certify.checker import Checker as Checker, Proof as Proof
from tiered.certify.instrument import Certify as Certify
from tiered.certify.records import Certified as Certified, Findings as Findings

__all__: list[str]
