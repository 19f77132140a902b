//! The files that pages load: part of the program, none from elsewhere.

use http::{HeaderValue, header};
use tollgate_web::{ResponseBody, WebRequest, WebResponse};

use crate::response;

/// A file.
pub(crate) struct Asset {
    path: &'static str,
    media: &'static str,
    text: &'static str,
}

pub(crate) const STYLE: &str = include_str!("assets/style.css");
pub(crate) const SCRIPT: &str = include_str!("assets/script.js");

const ASSETS: &[Asset] = &[
    Asset { path: "/console/style.css", media: "text/css; charset=utf-8", text: STYLE },
    Asset { path: "/console/script.js", media: "text/javascript; charset=utf-8", text: SCRIPT },
    Asset { path: "/console/icon.svg", media: "image/svg+xml", text: include_str!("assets/icon.svg") },
    Asset { path: "/favicon.ico", media: "image/svg+xml", text: include_str!("assets/icon.svg") },
];

/// The file at a path.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

impl Asset {
    /// The file, or 304 to a browser that has it. `no-cache`: asked again each time, so that a new version is seen at once.
    pub(crate) fn response(&self, request: &WebRequest) -> WebResponse {
        let tag = format!("\"{}-{}\"", env!("CARGO_PKG_VERSION"), checksum(self.text));
        let is_known = request.head().if_none_match == Some(tag.as_bytes());
        let body = if is_known { ResponseBody::empty() } else { ResponseBody::full(self.text) };
        let mut response = WebResponse::new(body);
        if is_known {
            *response.status_mut() = http::StatusCode::NOT_MODIFIED;
        }
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media));
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::try_from(tag) {
            fields.insert(header::ETAG, tag);
        }
        response::add_fields(&mut response);
        response
    }
}

/// Tells versions of a file apart: FNV-1a, because the file is ours.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_small_and_fetch_nothing_from_elsewhere() {
        assert!(SCRIPT.len() <= 20_000, "{}", SCRIPT.len());
        assert!(STYLE.len() + SCRIPT.len() <= 60_000);
        for text in ASSETS.iter().map(|asset| asset.text) {
            assert!(!text.contains("url(") && !text.contains("@import") && !text.contains("https://"));
        }
        assert!(!SCRIPT.contains("eval(") && !SCRIPT.contains("new Function"));
    }
}
