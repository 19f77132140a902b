//! Fields of fixed size.

/// Splits the next field off.
pub(crate) fn take<const N: usize>(fields: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = fields.split_first_chunk()?;
    *fields = rest;
    Some(*field)
}
