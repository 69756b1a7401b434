"""VisoGender: two tables with several versions, and photographs under the rows' numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from vlmfair.datasets import ParsedDataset, canonical_path, funnel_of, parse_dataset
from vlmfair.datasets.base import ProblemLog
from vlmfair.datasets.label_files import read_label_file
from vlmfair.datasets.splits import POOL, QUERIES
from vlmfair.datasets.visogender import FETCH, TASKS, photograph_of, table_path
from vlmfair.demo.raw_visogender import OO_COLUMNS, OP_COLUMNS, SECTORS, URL
from vlmfair.demo.wordings import COMPANIONS
from vlmfair.errors import ConfigError, RawDataError

NEWEST = {"OO": "10052025", "OP": "11012024"}
Write = Callable[..., Path]


def oo(number: int, gender: str = "masculine", **cells: str) -> dict[str, str]:
    return dict.fromkeys(OO_COLUMNS, "") | {
        "IDX": f"OO_{number}",
        "Occupation": "teacher",
        "Object": "board",
        URL: f"https://example.org/p/{number}.jpeg?w=600",
        "LICENSE OK?": "Yes",
        "Occupation_perceived_gender": gender,
        "Annotator": "Hannah",
        **cells,
    }


def op(number: int, gender: str = "feminine", other: str = "masculine", **cells: str) -> dict:
    return dict.fromkeys(OP_COLUMNS, "") | {
        "IDX": f"OP_{number}",
        "Occupation": "doctor",
        "Participant": "patient",
        URL: f"https://example.org/q/{number}.jpeg?w=600",
        "Licence": "Yes",
        "Occupation_perceived_gender": gender,
        "Participant_perceived_gender": other,
        "Annotator": "Suny",
        **cells,
    }


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "visogender_data"


@pytest.fixture
def write(raw: Path) -> Write:
    """Writes a table as released (CRLF, no last line end) and a picture of its own for each row."""

    def table(rows: list[dict[str, str]], day: str = "", pictures: bool = True) -> Path:
        task = rows[0]["IDX"][:2]
        path = raw / task / f"{task}_Visogender_{day or NEWEST[task]}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
        path.write_bytes("\r\n".join(lines).encode())
        (raw / "images").mkdir(exist_ok=True)
        for row in rows if pictures else []:
            colour = (sum(row["IDX"].encode()) % 256, int(row["IDX"][3:] or 0) % 256, 90)
            Image.new("RGB", (12, 10), colour).save(raw / "images" / f"{row['IDX']}.png")
        return path

    return table


def reasons(parsed: ParsedDataset) -> list[tuple[str, str]]:
    return [(row["record"], row["reason"]) for row in parsed.problems.to_pylist()]


def rows(parsed: ParsedDataset) -> dict[str, dict]:
    return {row["sample_id"]: row for row in parsed.samples.to_pylist()}


def test_reads_both_tables_with_all_that_prompts_need(raw: Path, write: Write) -> None:
    write([oo(1), oo(2, "feminine", Occupation="baker", Object="mixing_spoon")])
    write([op(1)])
    found = rows(parse_dataset("visogender", raw))
    assert list(found) == ["visogender/OO_1", "visogender/OO_2", "visogender/OP_1"]
    spoon, patient = found["visogender/OO_2"], found["visogender/OP_1"]
    assert (spoon["task"], spoon["gender"], spoon["companion"]) == ("OO", "Female", "mixing spoon")
    assert spoon["participant_gender"] is None
    assert (patient["task"], patient["occupation"], patient["companion"]) == (
        "OP",
        "doctor",
        "patient",
    )
    assert (patient["gender"], patient["participant_gender"]) == ("Female", "Male")
    raw_row = json.loads(spoon["raw"])
    assert raw_row["Object"] == "mixing_spoon"
    assert raw_row["table"] == "OO_Visogender_10052025.tsv"
    assert Path(patient["image"]) == raw / "images/OP_1.png"


def test_the_newest_table_is_read_unless_a_day_is_named(raw: Path, write: Write) -> None:
    """Days stand as DDMMYYYY: 02102023 is older than 11012024, whatever text order says."""
    write([oo(1)])
    write([op(1)], day="11012024")
    write([op(1, "masculine")], day="02102023")
    write([oo(1, "feminine")], day="02102023", pictures=False)
    newest = rows(parse_dataset("visogender", raw))
    assert [row["gender"] for row in newest.values()] == ["Male", "Female"]
    older = rows(parse_dataset("visogender", raw, options={"version": "2023-10-02"}))
    assert [row["gender"] for row in older.values()] == ["Female", "Male"]
    between = rows(parse_dataset("visogender", raw, options={"version": "2024-01-11"}))
    assert [row["gender"] for row in between.values()] == ["Female", "Female"]
    with pytest.raises(ConfigError, match=r"version is '2020'\. Write one of newest, 2023-10-02"):
        parse_dataset("visogender", raw, options={"version": "2020"})


def test_a_day_without_a_table_says_so(raw: Path, write: Write) -> None:
    write([oo(1)])
    with pytest.raises(RawDataError, match=r"no table OO_Visogender_<day>\.tsv of 2023-10-02 or b"):
        table_path(raw, "OO", "2023-10-02")


def test_the_repository_itself_and_its_older_names_are_read(tmp_path: Path, write: Write) -> None:
    old = {"Occupation_perceived_gender": "Occupation_Gender"}
    old["Participant_perceived_gender"] = "Participant_Gender"
    write([{old.get(name, name): cell for name, cell in oo(1).items()}])
    write([{old.get(name, name): cell for name, cell in op(1).items()}])
    (tmp_path / "data").mkdir()
    (tmp_path / "visogender_data").rename(tmp_path / "data/visogender_data")
    found = rows(parse_dataset("visogender", tmp_path))
    assert [row["gender"] for row in found.values()] == ["Male", "Female"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"Occupation_perceived_gender": "neutral"}, "unknown_gender"),
        ({"Occupation_perceived_gender": ""}, "unknown_gender"),
        ({URL: "NA"}, "no_url"),
        ({URL: ""}, "no_url"),
        ({"Object": " "}, "malformed_row"),
        ({"IDX": "OO_../1"}, "malformed_row"),
        ({"IDX": "12"}, "malformed_row"),
    ],
)
def test_a_row_that_cannot_be_used_is_a_problem(
    raw: Path, write: Write, change: dict[str, str], reason: str
) -> None:
    write([oo(1), oo(2)])
    broken = oo(2) | change
    path = raw / "OO/OO_Visogender_10052025.tsv"
    text = path.read_text().replace("\t".join(oo(2).values()), "\t".join(broken.values()))
    path.write_text(text)
    write([op(1)])
    parsed = parse_dataset("visogender", raw)
    assert [reason for _, reason in reasons(parsed)] == [reason]
    assert list(rows(parsed)) == ["visogender/OO_1", "visogender/OP_1"]


def test_a_row_with_too_few_fields_costs_itself_and_quotes_are_letters(
    raw: Path, write: Write
) -> None:
    write([oo(1, Annotator='"Siobhan'), oo(2)])
    path = raw / "OO/OO_Visogender_10052025.tsv"
    path.write_text(path.read_text() + "\r\nOO_3\teducation\tteacher")
    write([op(1)])
    parsed = parse_dataset("visogender", raw)
    assert reasons(parsed) == [("OO_Visogender_10052025.tsv:4", "malformed_row")]
    assert json.loads(rows(parsed)["visogender/OO_1"]["raw"])["Annotator"] == '"Siobhan'


def test_repeated_and_contradicting_rows(raw: Path, write: Write) -> None:
    write([oo(1), oo(2), oo(1), oo(3), oo(3, "feminine")])
    write([op(1)])
    assert Counter(reasons(parse_dataset("visogender", raw))) == {
        ("visogender/OO_1", "duplicate_record"): 1,
        ("visogender/OO_3", "conflicting_record"): 2,
    }


def test_images_have_any_ending_and_two_of_one_number_are_ambiguous(
    raw: Path, write: Write
) -> None:
    write([oo(1), oo(2), oo(3)])
    write([op(1)])
    Image.new("RGB", (9, 9)).save(raw / "images/OO_2.jpg")
    (raw / "images/OO_3.png").unlink()
    (raw / "images/OP_1.png").rename(raw / "OP/OP_1.png")
    parsed = parse_dataset("visogender", raw)
    assert list(rows(parsed)) == ["visogender/OO_1", "visogender/OP_1"]
    assert reasons(parsed) == [
        ("visogender/OO_2", "ambiguous_image"),
        ("visogender/OO_3", "image_missing"),
    ]
    assert "OO_2.jpg and OO_2.png" in parsed.problems["detail"].to_pylist()[0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.org/p/1.jpeg?w=600", "https://a.org/p/1.jpeg?w=1260&h=9", True),
        ("https://a.org/p/1.jpeg", "https://a.org/p/2.jpeg", False),
        # A thumbnail's query says which picture it is.
        ("https://t.org/images?q=tbn:A", "https://t.org/images?q=tbn:B", False),
        (
            "https://images.pexels.com/photos/81/pexels-photo-81.jpeg?w=600",
            "https://www.pexels.com/photos/81/a-woman.jpg",
            True,
        ),
        ("https://[bad", "https://[bad", True),
    ],
)
def test_addresses_of_one_photograph(one: str, other: str, same: bool) -> None:
    assert (photograph_of(one) == photograph_of(other)) is same


def test_a_photograph_of_two_rows_stays_and_is_on_one_side(raw: Path, write: Write) -> None:
    """OO_1 and OO_6 have addresses of one photograph, OO_2 and OO_7 the same bytes."""
    write(
        [oo(n) for n in range(1, 6)] + [oo(n, "feminine", Occupation="clerk") for n in range(6, 11)]
    )
    path = raw / "OO/OO_Visogender_10052025.tsv"
    path.write_text(path.read_text().replace("p/6.jpeg?w=600", "p/1.jpeg?w=1260"))
    (raw / "images/OO_7.png").write_bytes((raw / "images/OO_2.png").read_bytes())
    write([op(1)])
    for seed in ("0", "1", "2", "3"):
        parsed = parse_dataset("visogender", raw, options={"seed": seed})
        assert reasons(parsed) == [
            (f"visogender/OO_{n}", "shared_photograph") for n in (1, 2, 6, 7)
        ]
        found = rows(parsed)
        assert len(found) == 11
        for one, other in ((1, 6), (2, 7)):
            sides = {found[f"visogender/OO_{n}"]["split"] for n in (one, other)}
            assert sides == {QUERIES}


def test_the_split_has_two_of_each_stratum(raw: Path, write: Write) -> None:
    """VL-BICLE 0.A.1: with nothing missing, 92 and 184 images are the pools of OO and OP."""
    genders = ("masculine", "feminine")
    occupations = [name for names in SECTORS.values() for name in names]
    write(
        [
            oo(1 + 5 * place + n, gender, Occupation=occupation)
            for place, (occupation, gender) in enumerate(
                (o, g) for o in occupations for g in genders
            )
            for n in range(5)
        ]
    )
    write([op(1), op(2)])
    parsed = parse_dataset("visogender", raw)
    objects = [row for row in parsed.samples.to_pylist() if row["task"] == "OO"]
    pool = [row for row in objects if row["split"] == POOL]
    assert (len(objects), len(pool)) == (230, 92)
    assert set(Counter((row["occupation"], row["gender"]) for row in pool).values()) == {2}
    queries = Counter(row["gender"] for row in objects if row["split"] == QUERIES)
    assert queries == {"Male": 69, "Female": 69}


def test_only_restricts_images_and_names_rows_that_are_not_there(raw: Path, write: Write) -> None:
    write([oo(1), oo(2)])
    write([op(1)])
    parsed = parse_dataset("visogender", raw, only=["images/OO_2.png", "OO_77"])
    assert list(rows(parsed)) == ["visogender/OO_2"]
    assert reasons(parsed) == [("visogender/OO_77", "not_annotated")]
    assert canonical_path("visogender", "images/OO_2.png") == "OO_2"


@pytest.mark.parametrize("missing", ["folder", "table", "column", "images"])
def test_what_is_missing_is_named_with_the_remedy(raw: Path, write: Write, missing: str) -> None:
    write([oo(1)])
    write([op(1)])
    expected = {
        "folder": r"the raw folder of VisoGender does not exist",
        "table": r"no table OP_Visogender_<day>\.tsv is there",
        "column": r"column Participant is missing",
        "images": r"no record of visogender is usable \(image_missing 2\)",
    }[missing]
    table = raw / "OP/OP_Visogender_11012024.tsv"
    if missing == "folder":
        raw = raw.with_name("nowhere")
    elif missing == "table":
        table.unlink()
    elif missing == "column":
        table.write_text(table.read_text().replace("Participant\t", "Patient\t", 1))
    else:
        for path in (raw / "images").iterdir():
            path.unlink()
    with pytest.raises(RawDataError, match=expected + r".* Copy data/visogender_data of"):
        parse_dataset("visogender", raw)


def test_the_published_tables_read_without_a_fault(reference_dir: Path) -> None:
    """The counts of raw-data notes: 230 and 460 rows, 115 and 230 of each gender."""
    folder = reference_dir / "visogender"
    files = sorted(folder.glob("*_Visogender_*.tsv"))
    assert len(files) == 2
    for path, count in zip(files, (230, 460), strict=True):
        log = ProblemLog("visogender")
        table = read_label_file(path, ("IDX",), log, fetch=FETCH, separator="\t")
        assert (len(table), len(log.table())) == (count, 0)
        genders = table["Occupation_perceived_gender"].value_counts().to_dict()
        assert genders == {"masculine": count // 2, "feminine": count // 2}
        companion = next(task.companion for task in TASKS if task.name == path.name[:2])
        place = ("Object", "Participant").index(companion)
        stated = dict(zip(table["Occupation"], table[companion].str.replace("_", " ")))
        assert stated == {name: pair[place] for name, pair in COMPANIONS.items()}
        shared = table[URL].map(photograph_of).duplicated(keep=False)
        assert shared.sum() == {230: 4, 460: 16}[count]


def test_the_funnel_counts_rows(raw: Path, write: Write) -> None:
    write([oo(1), oo(2, "neutral"), oo(3)])
    write([op(1)])
    (raw / "images/OO_3.png").unlink()
    parsed = parse_dataset("visogender", raw)
    table = funnel_of("visogender", parsed)
    assert table is not None
    left = dict(zip(table["step"].to_pylist(), table["left"].to_pylist(), strict=True))
    assert left["all records"] == 4
    assert left["with a gender of two"] == 3
    assert left["with a usable image"] == 2
