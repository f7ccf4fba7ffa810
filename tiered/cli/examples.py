"""Examples for the end of each `--help`."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "optimize": (
        "tiered optimize in.onnx out.onnx -O3 --verify",
        "tiered optimize in.onnx out.onnx --disable 'fuse_*' --dim batch=1",
        "tiered optimize a.onnx b.onnx --out-dir optimised -O3",
        "tiered optimize in.onnx --dry-run --expect 'nodes<=500'",
    ),
    "batch": (
        "tiered batch models --out-dir optimised -O3 --jobs 4 --timeout 600",
        "tiered batch 'exports/**/*.onnx' list.txt --out-dir optimised --resume",
        "tiered batch verify optimised --against models --out-dir reports",
        "tiered batch list.txt --out-dir shared/out -O3 --cluster tcp://head:8786",
    ),
    "prepare": (
        "tiered prepare in.onnx out.onnx --dim batch=1 --to fp16 --strip all",
        "tiered prepare in.onnx out.onnx --to int8 --for npu.toml --inputs samples",
        "tiered prepare in.onnx out.onnx --opset 17 --to mixed --budget 'cosine>=0.999'",
    ),
    "convert": (
        "tiered convert in.onnx out.onnx --opset 21 --verify",
        "tiered convert in.onnx out.onnx --opset 13 --ir 8 --expand",
        "tiered convert in.onnx out.onnx --to fp16 --keep-ops Softmax --verify",
    ),
    "quantize": (
        "tiered quantize in.onnx out.onnx --inputs data --budget 'sqnr>=20dB'",
        "tiered quantize in.onnx out.onnx --inputs samples --backend onnxruntime_cpu",
        "tiered quantize in.onnx out.onnx --dynamic",
        "tiered quantize in.onnx out.onnx --weights int4",
    ),
    "extract": (
        "tiered extract in.onnx part.onnx --from /layer1/Relu_output_0 --to logits",
        "tiered extract in.onnx head.onnx --to hidden --verify",
    ),
    "gradient": (
        "tiered gradient in.onnx out.onnx --of loss --wrt w1 --wrt 'layer.*'",
        "tiered gradient in.onnx out.onnx --seed input --verify",
    ),
    "sensitivity": (
        "tiered sensitivity in.onnx --inputs samples",
        "tiered sensitivity in.onnx --weights 'encoder.*' --json",
    ),
    "split": (
        "tiered split in.onnx --at /layer1/Relu_output_0,hidden --out-dir parts",
        "tiered split in.onnx --at left+right --out-dir parts --verify",
    ),
    "merge": (
        "tiered merge encoder.onnx decoder.onnx out.onnx",
        "tiered merge a.onnx b.onnx out.onnx --map features=x --prefix b_ --verify",
    ),
    "run": (
        "tiered run in.onnx --inputs feeds.npz",
        "tiered run in.onnx --all-values --out values",
    ),
    "verify": (
        "tiered verify before.onnx after.onnx --layers",
        "tiered verify before.onnx after.onnx --numerics exact",
    ),
    "diff": (
        "tiered diff before.onnx after.onnx",
        "tiered diff before.onnx after.onnx --html diff.html",
        "tiered diff before.onnx after.onnx --exit-code --ignore properties,names",
    ),
    "certify": (
        "tiered certify before.onnx after.onnx",
        "tiered certify before.onnx after.onnx --with certificate.json",
    ),
    "bench": (
        "tiered bench before.onnx after.onnx",
        "tiered bench before.onnx after.onnx --expect 'B<=0.9*A' --dim batch=1 --json",
        "tiered bench in.onnx --threads 4 --runtime-level off --inputs feeds.npz",
    ),
    "tune": (
        "tiered tune in.onnx out.onnx --minutes 3 --html tune.html",
        "tiered tune in.onnx out.onnx --candidates a.onnx --save-backend tuned.toml",
        "tiered tune in.onnx out.onnx --backend npu.toml --measure 'npu-bench {model}'",
    ),
    "profile": (
        "tiered profile in.onnx --roofline",
        "tiered profile before.onnx after.onnx --html profile.html",
    ),
    "bisect": ("tiered bisect in.onnx -O3 --reproducer bug",),
    "replay": ("tiered replay bug",),
    "reduce": ("tiered reduce in.onnx small.onnx --check 'python fails.py {}'",),
    "check": ("tiered check in.onnx --backend npu.toml -O3 --dim batch=1",),
    "doctor": (
        "tiered doctor in.onnx --backend npu.toml --inputs samples",
        "tiered doctor in.onnx",
    ),
    "partition": (
        "tiered partition in.onnx --backend npu.toml --as-models parts",
        "tiered partition in.onnx out.onnx --backend onnxruntime_cpu --deny Softmax,Erf",
    ),
    "backends": ("tiered backends", "tiered backends onnxruntime_cpu -v"),
    "operators": ("tiered operators Gather", "tiered operators --missing range"),
    "passes": (
        "tiered passes fold_constant",
        "tiered passes 'fuse_*' --search attention",
        "tiered passes --op Conv",
    ),
    "inspect": ("tiered inspect in.onnx -v", "tiered inspect in.onnx --backend npu.toml"),
    "explain": (
        "tiered explain in.onnx fuse_gelu",
        "tiered explain in.onnx fuse_gelu --after default --node /mlp/Mul",
    ),
    "layout": ("tiered layout in.onnx --after default --dim batch=8",),
    "memory": (
        "tiered memory in.onnx --dim batch=8",
        "tiered memory in.onnx --svg memory.svg --json",
    ),
    "docs": ("tiered docs fuse_gelu", "tiered docs FoldConstant --json"),
    "view": ("tiered view in.onnx", "tiered view in.onnx out.onnx"),
    "options": ("tiered options",),
    "new": ("tiered new shape/fuse_x --kind function",),
    "completion": (
        "tiered completion bash > ~/.local/share/bash-completion/completions/tiered",
        "tiered completion zsh > ~/.zfunc/_tiered",
    ),
}
COMMANDS: Final = tuple(EXAMPLES)
FIRST: Final = ("tiered in.onnx out.onnx", "tiered optimize in.onnx out.onnx -O3 --verify")
"""The examples of `tiered --help`."""


def with_examples(epilogue: str, lines: tuple[str, ...]) -> str:
    """Return the end of a help text: the examples, then the common epilogue."""
    return "\n\n".join(("Examples:", *(f"  {line}" for line in lines), epilogue))
