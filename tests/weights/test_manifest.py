"""The manifest is complete and lists each file once."""

import re

import pytest

from tutti.weights import FP32_MODEL, INT8_MODEL, LEXICONS, RECOGNISER, VOICES, Precision, required_files
from tutti.weights.manifest import describe


@pytest.mark.parametrize(("precision", "model"), [("fp32", FP32_MODEL), ("int8", INT8_MODEL)])
def test_a_precision_needs_one_model_all_voices_and_the_lexicons(precision: Precision, model: object) -> None:
    files = required_files(precision)
    assert [file for file in files if file.path.endswith(".onnx")] == [model]
    assert len(VOICES) == 54
    assert {*VOICES.values(), *LEXICONS} < set(files)


def test_every_file_has_its_own_path_and_its_own_bytes() -> None:
    files = {*required_files("fp32"), *required_files("int8"), *RECOGNISER}
    assert len({file.path for file in files}) == len({file.sha256 for file in files}) == len(files) == 63
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)


def test_every_file_can_come_from_packages_and_those_of_the_repository_from_the_hub() -> None:
    files = {*required_files("fp32"), *required_files("int8")}
    assert all(file.parts for file in files)
    assert {file for file in files if file.hub_path} == {FP32_MODEL, *VOICES.values()}


def test_speaking_does_not_need_the_recogniser() -> None:
    assert not {*RECOGNISER} & {*required_files("fp32"), *required_files("int8")}
    assert describe(RECOGNISER) == "3 files of the recogniser (30 MB)"


def test_the_parts_of_the_model_are_numbered_from_0_to_18() -> None:
    numbers = [int(part.member.split("part")[1].removesuffix(".bin")) for part in FP32_MODEL.parts]
    assert numbers == list(range(19))


def test_a_description_groups_the_files() -> None:
    assert describe(required_files("fp32")) == "model.onnx, 54 voices and 4 lexicon files (366 MB)"
    assert describe([VOICES["af_heart"]]) == "voices/af_heart.bin (522,240 bytes)"
