"""Optimise with certificates: refuted rewrites are faults."""

import atexit
from collections import Counter

from onnx import ModelProto

from tiered import optimize_model


class Certifying:
    """Optimises as a user does with `--certify`, and counts how rewrites are proved."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.left = Counter[str]()
        atexit.register(self.report)

    def __call__(self, model: ModelProto, level: int) -> ModelProto:
        """Return the result of a level.

        Raises:
            AssertionError: a run refutes a rewrite.
        """
        result = optimize_model(model, opt_level=level, certify=True)
        assert result.certify is not None
        findings = result.certify.findings
        self.counts.update(f"O{level} {each.word}" for each in findings.rewrites)
        self.left.update(
            f"O{level} {each.pass_name}: {each.word}: {each.reason[:90]}"
            for each in findings.left()
            if each.word != "interface"
        )
        refuted = [str(each) for each in findings.rewrites if each.word == "refuted"]
        assert not refuted, f"refuted: {refuted[0]}"
        return result.model.to_proto()

    def report(self) -> None:
        """Print how rewrites were proved, and what was left most often."""
        print(dict(self.counts))
        for reason, count in self.left.most_common(25):
            print(f"{count:>6}  {reason}")
