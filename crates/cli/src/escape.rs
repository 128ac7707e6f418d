//! What an agent wrote must not command a terminal.
//!
//! Everything that came from an agent, a host or a file passes through here before it is shown: control characters,
//! escape sequences, bidirectional overrides and invisible characters become visible escapes. JSON output gets the
//! same characters as `\uXXXX`, so that it stays exact and is harmless to `cat`.

use std::borrow::Cow;

/// Escapes text of several lines; line breaks and tabs stay.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hostile(c) && c != '\n' && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            _ => push(&mut out, c),
        }
    }
    Cow::Owned(out)
}

/// Escapes text that is to stay on one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push(&mut out, c);
    }
    Cow::Owned(out)
}

/// Escapes what a valid JSON text may hold raw and a terminal may obey.
pub(crate) fn json(json: &str) -> Cow<'_, str> {
    // Line breaks between values are no part of a string and stay.
    if !json.chars().any(|c| is_hostile(c) && c != '\n') {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hostile(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal could obey this character, or a reader be deceived by it.
///
/// U+200C and U+200D stay: Persian, Indic scripts and emoji need them.
pub(crate) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_hostile(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        _ => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_and_overrides_become_visible() {
        assert_eq!(text("a\x1b]0;title\x07b"), "a\\u{1b}]0;title\\u{7}b");
        assert_eq!(text("safe\u{202e}txt.exe"), "safe\\u{202e}txt.exe");
        assert_eq!(text("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(text("one\r\ntwo\rthree\tfour"), "one\ntwo\\rthree\tfour");
        assert_eq!(line("one\ntwo\tthree"), "one\\ntwo\\tthree");
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        for plain in ["größer · 漢字 · नमस्ते", "👩\u{200d}💻 می\u{200c}خواهم", ""]
        {
            assert!(matches!(text(plain), Cow::Borrowed(_)));
            assert!(matches!(line(plain), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let value = "a\u{202e}b\u{7f}c\u{9b}d\u{e0041}e\n";
        let safe = json(&serde_json::to_string(value).unwrap()).into_owned();
        assert!(!safe.chars().any(is_hostile), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), value);
    }

    proptest! {
        #[test]
        fn nothing_hostile_ever_leaves(raw in "(\\PC|\\p{Cc}|\\p{Cf}|[\u{202a}-\u{202e}\u{2066}-\u{2069}\u{1b}\u{9b}\r\n\t]){0,60}") {
            prop_assert!(!text(&raw).chars().any(|c| is_hostile(c) && c != '\n' && c != '\t'));
            prop_assert!(!line(&raw).chars().any(is_hostile));
            let safe = json(&serde_json::to_string(&raw).unwrap()).into_owned();
            prop_assert!(!safe.chars().any(is_hostile));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), raw);
        }
    }
}
