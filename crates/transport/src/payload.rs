//! How bytes travel in lines that every shell can read: raw when plain, else octal-escaped for `printf %b`.

/// Appends `tag` and `bytes` as one line.
pub(crate) fn push_line(into: &mut Vec<u8>, tag: &str, bytes: &[u8]) {
    into.extend_from_slice(tag.as_bytes());
    if bytes.iter().all(|byte| matches!(byte, 0x20..=0x7e)) {
        into.push(b'.');
        into.extend_from_slice(bytes);
    } else {
        into.push(b'!');
        for byte in bytes {
            match byte {
                b'\\' | 0..=0x1f | 0x7f..=0xff => into.extend_from_slice(format!("\\0{byte:03o}").as_bytes()),
                0x20..=0x7e => into.push(*byte),
            }
        }
    }
    into.push(b'\n');
}

/// Decodes what `od -tx1` printed; a broken tail is dropped.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    text.as_bytes()
        .chunks_exact(2)
        .map_while(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let mut line = Vec::new();
        push_line(&mut line, "a", bytes);
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    #[test]
    fn a_line_never_holds_anything_a_shell_could_misread() {
        check(b"--model", "a.--model\n");
        check(b"c:\\dir $HOME `x`", "a.c:\\dir $HOME `x`\n");
        check(b"a\nb\\1", "a!a\\0012b\\01341\n");
        check("é".as_bytes(), "a!\\0303\\0251\n");
        check(b"", "a.\n");
    }

    #[test]
    fn hexadecimal_is_decoded() {
        assert_eq!(unhex("00ff0a"), [0, 255, 10]);
        assert_eq!(unhex(""), []);
        assert_eq!(unhex("0"), []);
    }
}
