//! Verification of server certificates.
//!
//! A certificate is trusted if an authority in the file signed it, or if the file contains the certificate itself: a
//! self-signed one, or one of version 1. The TLS library refuses both, but `redis-cli --cacert` accepts them. In either
//! case it must be valid now, the server must prove that it holds the key, and the certificate must name the host,
//! unless the configuration skips the host name. A certificate in the file without subject alternative names matches
//! any host.

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

/// What is verified besides the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// The chain and the host name.
    All,
    /// The chain.
    Chain,
    /// Nothing.
    Nothing,
}

/// Verifies server certificates.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) roots: RootCertStore,
    /// Certificates that are trusted by themselves.
    pub(super) trusted: Vec<CertificateDer<'static>>,
    pub(super) checks: Checks,
}

impl Verifier {
    fn is_trusted(&self, certificate: &CertificateDer<'_>) -> bool {
        self.trusted.iter().any(|trusted| trusted.as_ref() == certificate.as_ref())
    }

    /// A certificate that is trusted by itself must be valid now.
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
            // Version 1, without host names.
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
            // The library cannot parse the certificate, but can verify with its key.
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
