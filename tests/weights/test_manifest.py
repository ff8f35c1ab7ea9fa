"""The manifest is complete and speaks of each file once."""

import re

import pytest

from tutti.weights import EARS, FP32_MODEL, INT8_MODEL, LEXICONS, VOICES, Precision, wanted
from tutti.weights.manifest import described


@pytest.mark.parametrize(("precision", "model"), [("fp32", FP32_MODEL), ("int8", INT8_MODEL)])
def test_a_precision_wants_one_model_all_voices_and_the_lexicons(precision: Precision, model: object) -> None:
    files = wanted(precision)
    assert [file for file in files if file.path.endswith(".onnx")] == [model]
    assert len(VOICES) == 54
    assert {*VOICES.values(), *LEXICONS} < set(files)


def test_every_file_has_its_own_path_and_its_own_bytes() -> None:
    files = {*wanted("fp32"), *wanted("int8"), *EARS}
    assert len({file.path for file in files}) == len({file.sha256 for file in files}) == len(files) == 63
    assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for file in files)


def test_every_file_can_come_from_packages_and_those_of_the_repository_from_the_hub() -> None:
    files = {*wanted("fp32"), *wanted("int8")}
    assert all(file.parts for file in files)
    assert {file for file in files if file.hub_path} == {FP32_MODEL, *VOICES.values()}


def test_nobody_needs_the_recogniser_to_speak() -> None:
    assert not {*EARS} & {*wanted("fp32"), *wanted("int8")}
    assert described(EARS) == "3 files of the recogniser (30 MB)"


def test_the_parts_of_the_model_are_numbered_from_0_to_18() -> None:
    numbers = [int(part.member.split("part")[1].removesuffix(".bin")) for part in FP32_MODEL.parts]
    assert numbers == list(range(19))


def test_files_are_listed_as_a_person_would() -> None:
    assert described(wanted("fp32")) == "model.onnx, 54 voices and 4 lexicon files (366 MB)"
    assert described([VOICES["af_heart"]]) == "voices/af_heart.bin (522,240 bytes)"
