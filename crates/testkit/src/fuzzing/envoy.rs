//! Files of envoyproxy/ratelimit: any bytes become a domain or a report, and a domain can be evaluated.

use tollgate_rules::envoy::{self, Duplicates, EnvoyFile};

use crate::envoy::{Entries, check, probes};

/// The bytes of a file; after a NUL, descriptors to evaluate: one on each line, its entries separated by tabs, each a key,
/// `=` and a value.
pub fn envoy_config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (text, asked) = text.split_once('\0').unwrap_or((&text, ""));
    let domain = match envoy::read("edge.yaml", text) {
        Ok(domain) => domain,
        Err(report) => {
            assert!(report.is_fatal() && !report.to_string().is_empty());
            return;
        }
    };
    let mut descriptors = probes(&domain);
    descriptors.extend(asked.lines().take(100).map(entries));
    check(&domain, &descriptors);
    check_together(text, &domain);
}

fn entries(line: &str) -> Entries {
    let entry =
        |text: &str| text.split_once('=').map_or((text.to_owned(), String::new()), |(k, v)| (k.into(), v.into()));
    line.split('\t').map(entry).collect()
}

/// A second file of the same domain is refused, or refused for what both have.
fn check_together(text: &str, domain: &envoy::EnvoyDomain) {
    let files = [EnvoyFile { file: "a.yaml", text }, EnvoyFile { file: "b.yaml", text }];
    assert!(envoy::load(&files, Duplicates::Refuse).is_err(), "a domain in two files");
    let merged = envoy::load(&files, Duplicates::Merge);
    assert_eq!(merged.is_ok(), domain.descriptors.is_empty(), "{merged:?}");
    let alone = envoy::load(&files[..1], Duplicates::Refuse).map(|mut domains| {
        domains.iter_mut().for_each(|domain| forget_file(&mut domain.descriptors));
        domains
    });
    assert_eq!(alone.as_deref(), Ok(std::slice::from_ref(domain)));
}

/// Only loading tells where a descriptor stands; reading one text does not.
fn forget_file(level: &mut [envoy::EnvoyDescriptor]) {
    for descriptor in level {
        assert_eq!(descriptor.file_name.take().as_deref(), Some("a.yaml"));
        forget_file(&mut descriptor.descriptors);
    }
}
