//! Body of the fuzz target of receipts: any bytes are a reservation or none.

use crate::Reservation;

/// Decodes any bytes as a receipt. What was understood is packed and understood alike: an extended reservation keeps its
/// numbers, and so stays settled once.
pub fn receipts(data: &[u8]) {
    let Some(read) = Reservation::unpack(data) else { return };
    let shown = format!("{read:?}");
    let has_number = read.number().is_some();
    let mut packed = Vec::new();
    read.pack(&mut packed);
    let again = Reservation::unpack(&packed).map(|again| format!("{again:?}"));
    if has_number {
        assert_eq!(again.as_deref(), Some(shown.as_str()), "what was understood can be said again");
    } else {
        assert!(again.is_some(), "a receipt without a number gets one: {shown}");
    }
}
