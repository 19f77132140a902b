//! Numbers and digests as JSON, appended to a line without an allocation of their own.

use tollgate_core::Digest;

/// Appends `before` and a number.
pub(crate) fn number(line: &mut String, before: &str, number: u64) {
    line.push_str(before);
    line.push_str(itoa::Buffer::new().format(number));
}

/// Appends a digest in hex, in its quotes.
pub(crate) fn hex(line: &mut String, digest: Digest) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    line.push('"');
    for word in digest.0 {
        for shift in (0..64).step_by(4).rev() {
            line.extend(DIGITS.get((word >> shift) as usize & 15));
        }
    }
    line.push('"');
}
