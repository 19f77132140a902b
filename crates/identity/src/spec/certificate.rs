//! Reads `certificate`: which names of a client certificate identify a caller.

use tollgate_rules::problem::Problems;
use tollgate_rules::read::FieldValue;

/// Client certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateSpec {
    /// The kind of name that identifies a caller.
    pub name: CertificateName,
}

/// A kind of subject alternative name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateName {
    /// A DNS name.
    #[default]
    Dns,
    /// A URI, such as a SPIFFE id.
    Uri,
}

const FIELDS: &[&str] = &["san"];
const NAMES: &[(&str, CertificateName)] = &[("dns", CertificateName::Dns), ("uri", CertificateName::Uri)];

pub(super) fn read_certificate(value: FieldValue<'_>, problems: &mut Problems) -> Option<CertificateSpec> {
    let fields = value.fields(FIELDS, "certificate: { san: dns }", problems);
    let san = fields.required("san", "say which names identify a caller: `certificate: { san: dns }`", problems)?;
    Some(CertificateSpec { name: san.choice(NAMES, problems)? })
}
