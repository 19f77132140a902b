//! Requests as a client writes them: arrays of bulk strings.

use crate::length;

/// Appends a complete request.
pub fn write_request(out: &mut Vec<u8>, parts: &[&[u8]]) {
    write_array_header(out, parts.len());
    parts.iter().for_each(|bytes| write_bulk(out, bytes));
}

/// Appends the header of a request; `parts` bulk strings must follow.
#[inline]
pub fn write_array_header(out: &mut Vec<u8>, parts: usize) {
    length::write(out, b'*', parts);
}

/// Appends one part of a request.
#[inline]
pub fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    write_bulk_header(out, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends the header of one part; its bytes and `\r\n` must follow.
#[inline]
pub fn write_bulk_header(out: &mut Vec<u8>, length: usize) {
    length::write(out, b'$', length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_an_array_of_strings_with_their_lengths() {
        let mut out = Vec::new();
        write_request(&mut out, &[b"SET", b"k", b"\r\n"]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\n");
    }

    #[test]
    fn lengths_of_several_digits_are_written_out() {
        let mut out = Vec::new();
        write_bulk(&mut out, &[b'x'; 10]);
        write_array_header(&mut out, 1234);
        assert_eq!(out, b"$10\r\nxxxxxxxxxx\r\n*1234\r\n");
    }
}
