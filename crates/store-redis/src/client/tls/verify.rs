//! Whom to believe that it is the store.
//!
//! A certificate is trusted if an authority in the file signed it, or if it is in the file itself: a self-signed one,
//! which is its own authority, or one of version 1. The TLS library refuses both, and `redis-cli --cacert` takes them.
//! Either way it must be valid now, prove that it holds its key, and name the host that was asked for, unless it was
//! spelled out that the name does not matter. A certificate in the file that names no hosts in the way of our time is
//! the name itself.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::certificate::{Certificate, names_hosts};

/// What is checked of a certificate beside its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// Who signed it, and the host's name.
    All,
    /// Who signed it.
    Chain,
    /// Nothing.
    Nothing,
}

/// Checks the certificates of servers.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) roots: RootCertStore,
    /// Certificates that are trusted themselves.
    pub(super) trusted: Vec<CertificateDer<'static>>,
    pub(super) checks: Checks,
}

impl Verifier {
    fn is_trusted(&self, certificate: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|trusted| trusted.as_ref() == certificate.as_ref())
    }

    /// A certificate that is trusted itself must be valid now.
    fn check_trusted(&self, certificate: &CertificateDer<'_>, now: UnixTime, otherwise: Error) -> Result<(), Error> {
        if !self.is_trusted(certificate) {
            return Err(otherwise);
        }
        match Certificate::read(certificate) {
            Some(read) if read.is_valid(now.as_secs()) => Ok(()),
            Some(read) if now.as_secs() < read.not_before => Err(CertificateError::NotValidYet.into()),
            Some(_) => Err(CertificateError::Expired.into()),
            None => Err(CertificateError::BadEncoding.into()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.checks == Checks::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let parsed = match ParsedCertificate::try_from(certificate) {
            Ok(parsed) => parsed,
            // Of version 1, which has no names.
            Err(unread) => {
                self.check_trusted(certificate, now, unread)?;
                return Ok(ServerCertVerified::assertion());
            }
        };
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)
            .or_else(|unsigned| self.check_trusted(certificate, now, unsigned))?;
        let is_name_itself = self.is_trusted(certificate) && !names_hosts(certificate);
        if self.checks == Checks::All && !is_name_itself {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        match (ParsedCertificate::try_from(certificate), Certificate::read(certificate)) {
            // The library does not read it, but knows what to do with its key.
            (Err(_), Some(read)) if self.checks == Checks::Nothing || self.is_trusted(certificate) => {
                verify_tls13_signature_with_raw_key(
                    message,
                    &SubjectPublicKeyInfoDer::from(read.key),
                    signed,
                    algorithms,
                )
            }
            _ => verify_tls13_signature(message, certificate, signed, algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
