from __future__ import annotations

import codecs
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apply_edit.errors import InputError
from apply_edit.text.document import Document

from .strategies import edited, texts

BOM = b"\xef\xbb\xbf"


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def code(data: bytes, encoding: str = "utf-8") -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        Document.from_bytes(data, encoding)
    assert caught.value.message.isprintable()
    return caught.value.code, caught.value.message


class TestView:
    @pytest.mark.parametrize(
        ("data", "view", "endings"),
        [
            (b"", "", ()),
            (b"a", "a\n", ("",)),
            (b"a\n", "a\n", ("\n",)),
            (b"\n", "\n", ("\n",)),
            (b"a\n\n", "a\n\n", ("\n", "\n")),
            (b"a\r\nb\r\n", "a\nb\n", ("\r\n", "\r\n")),
            (b"a\r\nb\nc", "a\nb\nc\n", ("\r\n", "\n", "")),
            (b"a\rb\r", "a\nb\n", ("\r", "\r")),
            (b"a\rb", "a\nb\n", ("\r", "")),
            (b"\r", "\n", ("\r",)),
            (b"a\rb\nc\r", "a\rb\nc\r\n", ("\n", "")),
            (b"a\r\r\n", "a\r\n", ("\r\n",)),
            (b"a\x0cb\x0b\n", "a\x0cb\x0b\n", ("\n",)),
            ("a\x85b\u2028c\u2029\x1cd\n".encode(), "a\x85b\u2028c\u2029\x1cd\n", ("\n",)),
            (BOM + b"a\n", "a\n", ("\n",)),
            (BOM, "", ()),
            (BOM + BOM + b"a\n", "\ufeffa\n", ("\n",)),
            (b"\t a \t\n", "\t a \t\n", ("\n",)),
        ],
    )
    def test_lines_end_where_git_ends_them(
        self, data: bytes, view: str, endings: tuple[str, ...]
    ) -> None:
        document = Document.from_bytes(data)
        assert document.view == view
        assert document.endings == endings
        assert document.restore(view) == document.data == data

    @pytest.mark.parametrize(
        ("data", "encoding", "view"),
        [
            ("é\r\n".encode("latin-1"), "latin-1", "é\n"),
            ("中文\n".encode("gbk"), "gbk", "中文\n"),
            (b"\x84\x31\x95\x33" + "中\n".encode("gb18030"), "gb18030", "中\n"),
            ("é\r\n".encode("utf-16"), "utf-16", "é\n"),
            (b"\xfe\xff" + "é\n".encode("utf-16-be"), "utf-16", "é\n"),
            (b"\xff\xfe" + "é\n".encode("utf-16-le"), "utf-16-le", "é\n"),
            ("é\n".encode("utf-16-be"), "utf-16-be", "é\n"),
            ("é\n".encode("utf-32"), "utf-32", "é\n"),
            (codecs.BOM_UTF16_BE, "utf-16", ""),
            (BOM + "é\n".encode(), "utf-8-sig", "é\n"),
            ("é\n".encode(), "utf-8-sig", "é\n"),
            ("é\n".encode("cp1252"), "cp1252", "é\n"),
            ("日本\nabc\n".encode("iso2022_jp"), "iso2022_jp", "日本\nabc\n"),
        ],
    )
    def test_other_encodings(self, data: bytes, encoding: str, view: str) -> None:
        document = Document.from_bytes(data, encoding)
        assert document.view == view
        assert document.restore(view) == document.data == data
        assert Document.from_bytes(document.restore(view + "x\n"), encoding).view == view + "x\n"


class TestRefusals:
    def test_nul(self) -> None:
        assert code(b"ab\0c") == (
            "binary",
            "the file is not text (byte 2 is NUL); name a text file",
        )
        assert code(b"ab\0c", "latin-1")[0] == "binary"
        assert code(BOM + b"\0")[1].startswith("the file is not text (byte 3 ")
        assert code("a\0b".encode("utf-16"), "utf-16")[0] == "binary"

    @pytest.mark.parametrize(
        "data", [b"%PDF-1.4\n%\xe2\xe3\n", b"\x1f\x8b\x08\x08\xff", b"BZh91AY\xff"]
    )
    def test_known_kinds(self, data: bytes) -> None:
        assert code(data)[0] == code(data, "latin-1")[0] == "binary"

    def test_text_that_names_a_kind_is_text(self) -> None:
        assert Document.from_bytes(b"%PDF-1.4\n").view == "%PDF-1.4\n"

    def test_one_bad_byte_is_named(self) -> None:
        kind, message = code(b"abc\n" * 5 + b"\xe9t\xe9\n")
        assert kind == "not-utf8"
        assert message == "byte 20 is not UTF-8; name the file's encoding with --encoding"
        assert "byte 5 " in code(BOM + b"ab\xff")[1]
        assert code(b"\xed\xa0\x80")[0] == "not-utf8"  # an unpaired surrogate

    def test_a_wide_mark_names_its_encoding(self) -> None:
        kind, message = code("hi\n".encode("utf-16"))
        assert kind == "not-utf8"
        assert message.endswith("say --encoding utf-16")
        assert code("hi\n".encode("utf-32"))[1].endswith("say --encoding utf-32")

    @pytest.mark.parametrize(
        "name", ["klingon", "rot13", "hex", "base64", "", "a\0b", "é", "\udcff\n"]
    )
    def test_unknown_encoding(self, name: str) -> None:
        assert code(b"a", name)[0] == "unknown-encoding"

    @pytest.mark.parametrize(
        ("data", "name", "at"),
        [
            (b"ab\x81", "cp1252", 2),
            (b"ab\x80c", "ascii", 2),
            (b"a\0b", "utf-16-le", 2),
            (b"ab", "utf-16", None),
            (b"abc+AGE-", "utf-7", 3),
            (b"a", "undefined", 0),
            (b"a\n", "unicode_escape", 1),
            (b"\x1b$B\x1b(Bab", "iso2022_jp", 0),
        ],
    )
    def test_what_does_not_come_back(self, data: bytes, name: str, at: int | None) -> None:
        kind, message = code(data, name)
        assert kind == "encoding"
        if at is not None:
            assert f"byte {at} " in message

    def test_new_text_that_the_encoding_lacks(self) -> None:
        document = Document.from_bytes("é\n".encode("latin-1"), "latin-1")
        with pytest.raises(InputError, match=r"line 2 .* U\+20AC") as caught:
            document.restore("é\n€\n")
        assert caught.value.code == "encoding"
        with pytest.raises(InputError, match=r"U\+D800"):
            Document.from_bytes(b"a\n").restore("a\n\ud800\n")
        with pytest.raises(InputError, match=r"U\+00A5"):  # would come back as a backslash
            Document.from_bytes(b"a\n", "shift_jis").restore("\u00a5\n")


class TestRestore:
    @given(texts(), st.sampled_from(["", "\ufeff"]))
    def test_unchanged_is_identical(self, text: str, mark: str) -> None:
        data = (mark + text).encode()
        document = Document.from_bytes(data)
        assert document.restore(document.view) == document.data == data
        assert document.restore(nfc(document.view), nfc(document.view)) == data
        assert (
            document.restore(document.view, unicodedata.normalize("NFKD", document.view))
            is not None
        )

    @given(texts())
    def test_unchanged_is_identical_for_any_tokenizer(self, text: str) -> None:
        document = Document.from_bytes(text.encode())
        for seen in (
            document.view.replace(" ", ""),
            document.view.replace("x", "").replace("\n\n", "\n"),
            document.view.replace("\u00e9", "??"),
            " " + document.view,
        ):
            if seen.strip("\n"):
                assert document.restore(seen, seen) == document.data

    @given(edited())
    @example(("\x0c", "\n\n"))
    @example(("x", "y\n\n\n"))
    def test_view_of_the_result_is_the_new_view(self, pair: tuple[str, str]) -> None:
        old, new = (Document.from_bytes(text.encode()) for text in pair)
        if "\r" in old.view + new.view or old.view.startswith("\ufeff") != new.view.startswith(
            "\ufeff"
        ):
            return
        view = new.view
        result = Document.from_bytes(old.restore(view))
        if old.view and old.endings[-1] == "" and view.endswith("\n"):
            # New blank lines at the end would be newlines there, which this file does not have.
            assert view.startswith(result.view)
            assert view[len(result.view) :].strip("\n") == ""
        else:
            assert result.view == view

    @given(edited())
    def test_lines_before_and_after_the_edit_keep_their_bytes(self, pair: tuple[str, str]) -> None:
        old, new = (Document.from_bytes(text.encode()) for text in pair)
        result = old.restore(nfc(new.view), nfc(old.view))
        a, b = nfc(old.view).split("\n"), nfc(new.view).split("\n")
        same = 0
        while same < min(len(a), len(b)) - 1 and a[same] == b[same]:
            same += 1
        head = old.slice(1, same)[1].data if same else b""
        if not same or old.endings[same - 1]:
            assert result.startswith(old.mark + head)

    @pytest.mark.parametrize(
        ("data", "new", "expected"),
        [
            (b"a", "a\n", b"a"),
            (b"a", "a", b"a"),
            (b"a\n", "a", b"a\n"),
            (b"a", "b\nc\n", b"b\nc"),
            (b"a", "b\nc", b"b\nc"),
            (b"", "a", b"a\n"),
            (b"", "a\n", b"a\n"),
            (b"", "", b""),
            (b"a\n", "", b""),
            (b"a", "", b""),
            (BOM, "a", BOM + b"a\n"),
            (BOM + b"a\n", "\ufeffb\n", BOM + b"b\n"),
            (b"a\n", "\ufeffb\n", b"b\n"),
            (BOM + b"a\n", "", BOM),
            (b"a\n", "a\n\n\n", b"a\n\n\n"),
            (b"a\n\n\n", "a\n", b"a\n"),
            (b"a  \nb\t\n", "a  \nc\t\n", b"a  \nc\t\n"),
        ],
    )
    def test_ends_of_the_file(self, data: bytes, new: str, expected: bytes) -> None:
        assert Document.from_bytes(data).restore(new) == expected

    @pytest.mark.parametrize(
        ("data", "new", "expected"),
        [
            (b"a\r\nb\r\n", "a\nx\nb\n", b"a\r\nx\r\nb\r\n"),
            (b"a\r\nb", "a\nb\nc\n", b"a\r\nb\r\nc"),
            (b"a\rb\r", "a\nx\nb\n", b"a\rx\rb\r"),
            (b"a\r\nb\nc\n", "a\nx\nb\nc\n", b"a\r\nx\r\nb\nc\n"),
            (b"a\r\nb\nc\n", "a\nb\nx\nc\n", b"a\r\nb\nx\nc\n"),
            (b"a\r\nb\nc\n", "x\na\nb\nc\n", b"x\r\na\r\nb\nc\n"),
            (b"a\nb\r\n", "a\nb\nx\n", b"a\nb\r\nx\r\n"),
            # changed lines keep their own end
            (b"a\none = 1\r\nb\n", "a\none = 2\nb\n", b"a\none = 2\r\nb\n"),
            (
                b"a\none = 1;\r\nb\n",
                "a\none = 2;\ntwo = 3;\nb\n",
                b"a\none = 2;\r\ntwo = 3;\r\nb\n",
            ),
            (b"a\none(two)\r\nb\n", "a\none(\n    two)\nb\n", b"a\none(\r\n    two)\r\nb\n"),
            (b"a = 1\nb = 2\r\n", "b = 3\n", b"b = 3\r\n"),
            # the model writes its own carriage returns
            (b"a\nb\n", "a\r\nc\r\n", b"a\nc\n"),
            (b"a\r\nb\r\n", "a\r\nc\r\n", b"a\r\nc\r\n"),
            (b"a\rb\r", "a\r\nc\r\n", b"a\rc\r"),
            (b"a\r\r\nb\nc\n", "a\r\nx\r\nc\n", b"a\r\r\nx\nc\n"),
            # a lone carriage return stays inside its line
            (b"a\rb\nc\n", "a\rb\nd\n", b"a\rb\nd\n"),
            # the last line without an end moves up
            (b"a\r\nb", "b\na\n", b"b\r\na"),
        ],
    )
    def test_line_ends(self, data: bytes, new: str, expected: bytes) -> None:
        assert Document.from_bytes(data).restore(new) == expected

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            # untouched line, changed neighbour
            ("cafe\u0301\nb\n", "caf\u00e9\nc\n", "cafe\u0301\nc\n"),
            # untouched words of a changed line
            (
                "x = 'cafe\u0301' # A\u030a\n",
                "y = 'caf\u00e9' # \u00c5!\n",
                "y = 'cafe\u0301' # A\u030a!\n",
            ),
            # an accented letter inside a word that grows
            ("re\u0301sume\u0301\n", "r\u00e9sum\u00e9s\n", "re\u0301sume\u0301s\n"),
            # new text stays as written, in whichever form
            (
                "cafe\u0301\n",
                "caf\u00e9\nth\u00e9\nthe\u0301\n",
                "cafe\u0301\nth\u00e9\nthe\u0301\n",
            ),
            # another word that happens to share a letter is new
            ("cafe\u0301\n", "th\u00e9\n", "th\u00e9\n"),
            ("\u212b and \u2126 x\n", "\u00c5 and \u03a9 y\n", "\u212b and \u2126 y\n"),
            # Hangul syllables as jamo, one of three changed
            (
                "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165\n",
                "\ud55c\uad6d\ub9d0\n",
                "\u1112\u1161\u11ab\u1100\u116e\u11a8\ub9d0\n",
            ),
            # both spellings of one line
            ("e\u0301\na\n\u00e9\n", "\u00e9\nb\n\u00e9\n", "e\u0301\nb\n\u00e9\n"),
            # a word kept on a line that is split in two
            (
                "f(cafe\u0301, the\u0301)\n",
                "f(\n  caf\u00e9,\n  th\u00e9)\n",
                "f(\n  cafe\u0301,\n  the\u0301)\n",
            ),
            # moved in from nowhere, order of marks
            ("q\u0307\u0323\nz\n", "q\u0323\u0307\ny\n", "q\u0307\u0323\ny\n"),
        ],
    )
    def test_composed_for_the_model(self, old: str, new: str, expected: str) -> None:
        document = Document.from_bytes(old.encode())
        assert document.restore(new, nfc(document.view)) == expected.encode()
        crlf = Document.from_bytes(BOM + old.replace("\n", "\r\n").encode())
        assert crlf.restore(new, nfc(crlf.view)) == BOM + expected.replace("\n", "\r\n").encode()

    def test_other_tokenizers(self) -> None:
        document = Document.from_bytes("\ufb01x \uff21\nb\n".encode())
        seen = unicodedata.normalize("NFKC", document.view)
        assert document.restore("fix A\nc\n", seen) == "\ufb01x \uff21\nc\n".encode()
        # half of what a ligature is shown as: the model's own letters
        assert document.restore("fax A\nb\n", seen) == "fax \uff21\nb\n".encode()
        # characters that a tokenizer drops
        document = Document.from_bytes("a\u200bb \u200b\nc\n".encode())
        seen = document.view.replace("\u200b", "")
        assert document.restore("ab \nd\n", seen) == "a\u200bb \u200b\nd\n".encode()
        assert document.restore("ab d\nc\n", seen).startswith("a\u200bb".encode())

    def test_ten_thousand_equal_lines(self) -> None:
        lines = ["row, e\u0301\n", "\n", "}\r\n"] * 4_000
        document = Document.from_bytes("".join(lines).encode())
        seen = nfc(document.view)
        new = seen.split("\n")
        del new[9_000:9_003]
        new[3_000:3_000] = ["caf\u00e9"]
        expected = [*lines[:3_000], "caf\u00e9\r\n", *lines[3_000:8_999], *lines[9_002:]]
        assert document.restore("\n".join(new), seen) == "".join(expected).encode()


class TestSlice:
    @given(texts(), st.data(), st.sampled_from(["utf-8", "utf-16", "utf-32-be"]))
    def test_the_rest_is_byte_exact(self, text: str, data: st.DataObject, encoding: str) -> None:
        document = Document.from_bytes(text.encode(encoding), encoding)
        if not document.endings:
            return
        first = data.draw(st.integers(1, len(document.endings)))
        last = data.draw(st.integers(first, len(document.endings)))
        before, middle, after = document.slice(first, last)
        assert before + middle.restore(middle.view) + after == document.data
        assert middle.view.split("\n") == [*document.view.split("\n")[first - 1 : last], ""]
        end = middle.restore("new" + "\n" * data.draw(st.integers(0, 1)))
        if "\r" not in document.view:
            ends = (before + end + after).decode(encoding).endswith(("\r", "\n"))
            assert ends is bool(document.endings[-1])

    @pytest.mark.parametrize(
        ("data", "lines", "new", "expected"),
        [
            (BOM + b"a\r\nb\nc", (1, 1), "x\ny", BOM + b"x\r\ny\r\nb\nc"),
            (BOM + b"a\r\nb\nc", (1, 1), "\ufeffx\n", BOM + b"x\r\nb\nc"),
            (b"a\r\nb\nc", (3, 3), "x\ny\n", b"a\r\nb\nx\ny"),
            (b"a\r\nb", (2, 2), "x\ny\n", b"a\r\nx\r\ny"),
            (b"a\r\nb\n", (2, 2), "", b"a\r\n"),
            (b"a\nb\nc\n", (2, 2), "b\n\n", b"a\nb\n\nc\n"),
        ],
    )
    def test_new_lines(
        self, data: bytes, lines: tuple[int, int], new: str, expected: bytes
    ) -> None:
        before, middle, after = Document.from_bytes(data).slice(*lines)
        assert before + middle.restore(new) + after == expected

    @pytest.mark.parametrize("lines", [(0, 1), (2, 1), (1, 4), (-1, 2), (4, 4)])
    def test_impossible(self, lines: tuple[int, int]) -> None:
        with pytest.raises(InputError, match="has 3 lines") as caught:
            Document.from_bytes(b"a\nb\nc").slice(*lines)
        assert caught.value.code == "lines"
        with pytest.raises(InputError, match="has no lines"):
            Document.from_bytes(b"").slice(1, 1)
