//! The text inside a JSON string, as valid Unicode whatever was written.

use std::borrow::Cow;

/// Returns the text of an escaped string, borrowed if it is written plainly.
pub(super) fn text(escaped: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', escaped).is_none() {
        return lossy(escaped);
    }
    let mut text = Vec::with_capacity(escaped.len());
    unescape(escaped, &mut text);
    Cow::Owned(into_string(text))
}

/// Appends the text of an escaped string to `text`, as valid UTF-8.
///
/// A surrogate without its other half and bytes that are no UTF-8 become U+FFFD; an unknown escape stands for itself.
pub(super) fn unescape(mut escaped: &[u8], text: &mut Vec<u8>) {
    while let Some(backslash) = memchr::memchr(b'\\', escaped) {
        append_lossy(&escaped[..backslash], text);
        let after = &escaped[backslash + 1..];
        let (plain, taken) = match after.first() {
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'u') => unicode_escape(after),
            Some(other @ 0..=0x7f) => (char::from(*other), 1),
            // The rest of a character of several bytes follows as it is.
            Some(_) | None => ('\\', 0),
        };
        text.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
        escaped = &after[taken..];
    }
    append_lossy(escaped, text);
}

/// Returns the character of an escape that starts with `u`, and how many bytes it takes.
fn unicode_escape(after: &[u8]) -> (char, usize) {
    let Some(first) = hex(after.get(1..5)) else { return ('u', 1) };
    let low = match after.get(5..7) {
        Some(b"\\u") if (0xd800..0xdc00).contains(&first) => hex(after.get(7..11)),
        Some(_) | None => None,
    };
    match low.filter(|low| (0xdc00..0xe000).contains(low)) {
        Some(low) => {
            let joined = 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 11)
        }
        None => (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5),
    }
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}

fn append_lossy(bytes: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(lossy(bytes).as_bytes());
}

/// `String::from_utf8_lossy` takes its slow way even when there is nothing to repair.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn into_string(text: Vec<u8>) -> String {
    // Always valid (see `unescape`); the other arm only spares an `expect`.
    String::from_utf8(text).unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn escapes_read_as_serde_json_reads_them(text in "(\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|[a-z\u{e9}]){0,12}") {
            let quoted = format!("\"{text}\"");
            if let Ok(expected) = serde_json::from_str::<String>(&quoted) {
                let read = super::text(text.as_bytes());
                prop_assert_eq!(read.as_ref(), expected.as_str());
            }
        }
    }

    #[test]
    fn a_lone_surrogate_and_bytes_that_are_no_text_become_the_replacement_character() {
        for (written, read) in [
            (&b"a\\ud800b"[..], "a\u{fffd}b"),
            (b"\\udc00", "\u{fffd}"),
            (b"\\ud83d\\ude00", "\u{1F600}"),
            (b"\\ud83d\\u0041", "\u{fffd}A"),
            (b"\\ud83d", "\u{fffd}"),
            (b"a\xffb", "a\u{fffd}b"),
            (b"\\n\xe2\x80", "\n\u{fffd}"),
            (b"a\0b", "a\0b"),
            (b"\\x", "x"),
            (b"\\u00zz", "u00zz"),
        ] {
            assert_eq!(text(written), read, "{written:?}");
        }
    }
}
