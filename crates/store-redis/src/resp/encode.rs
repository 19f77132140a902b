//! Commands, as arrays of strings.

/// Appends a whole command.
pub fn command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    header(out, parts.len());
    parts.iter().for_each(|bytes| part(out, bytes));
}

/// Appends the head of a command of `parts` parts, which must follow.
pub fn header(out: &mut Vec<u8>, parts: usize) {
    length(out, b'*', parts);
}

/// Appends one part.
pub fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn length(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_strings_with_their_lengths() {
        let mut out = Vec::new();
        command(&mut out, &[b"SET", b"k", b"\r\n"]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\n");
    }
}
