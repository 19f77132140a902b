//! Fuzz targets of this crate, also replayed on their corpora: each takes bytes and panics if an invariant fails.

use crate::proxy_header::{self, ProxiedClient};

/// PROXY protocol: 16 bytes, then the block. An address comes only from a complete TCP header within the cap.
pub fn proxy_header(data: &[u8]) {
    let Some((fixed, rest)) = data.split_first_chunk::<16>() else { return };
    let Some(length) = proxy_header::block_length(fixed) else { return };
    assert!(length <= 2048, "the block is capped");
    let Some(block) = rest.get(..length) else { return };
    if let Some(ProxiedClient::Address(address)) = proxy_header::parse(fixed, block) {
        let [.., command, family, _, _] = fixed;
        assert_eq!(*command, 0x21);
        assert!(matches!((family, length), (0x11, 12..) | (0x21, 36..)));
        assert_eq!(address.to_canonical(), address);
    }
}
