//! Basic authentication: names and passwords of a file, one `name:sha256` per line.
//!
//! A digest without salt and without work is right for long random passwords only, which is what programs have: one
//! digest per request, so that a flood of guesses costs no more than a flood of requests.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::credential_source::{Presented, authorization};
use crate::key_file::read_small;
use crate::{BasicSpec, CredentialFailure, Evidence, IdentityError, KeyDigest, ProofKind, ProvenIdentity};

/// Longest credential, encoded.
const CREDENTIAL_BYTES_MAX: usize = 1024;
/// Longest file of users.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Longest name of a user.
const NAME_BYTES_MAX: usize = 256;

/// The users of one file.
#[derive(Debug)]
pub(crate) struct BasicVerifier {
    users: HashMap<String, BasicUser>,
}

#[derive(Debug)]
struct BasicUser {
    password: KeyDigest,
    identity: Arc<ProvenIdentity>,
}

/// A name and a password that a request shows.
pub(crate) struct NameAndPassword {
    name: String,
    password: KeyDigest,
}

impl BasicVerifier {
    /// Reads the file. A relative name starts at `folder`.
    pub(crate) fn load(spec: &BasicSpec, folder: &Path) -> Result<BasicVerifier, IdentityError> {
        let path = folder.join(&spec.file);
        let bytes = read_small(&path, FILE_BYTES_MAX)?;
        let text = String::from_utf8(bytes).map_err(|_| {
            IdentityError::new(format!("cannot use {} as a file of users: it is no UTF-8", path.display()))
        })?;
        BasicVerifier::parse(&path.display().to_string(), &text)
    }

    fn parse(file: &str, text: &str) -> Result<BasicVerifier, IdentityError> {
        let mut users = HashMap::new();
        for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let user = line.split_once(':').filter(|(name, _)| is_name(name));
            let user = user.and_then(|(name, hex)| Some((name, KeyDigest::from_hex(hex.trim())?)));
            let Some((name, password)) = user else {
                let message = "a line is NAME:SHA256 of a long random password, in hexadecimal digits; make one with: \
                               printf %s \"$PASSWORD\" | sha256sum";
                return Err(IdentityError::new(format!("{file}:{number}: {message}")));
            };
            let mut identity = ProvenIdentity::new(ProofKind::Basic, format!("user:{name}"));
            identity.user_id = Some(name.to_owned());
            let user = BasicUser { password, identity: Arc::new(identity) };
            if users.insert(name.to_owned(), user).is_some() {
                return Err(IdentityError::new(format!("{file}:{number}: the user {name} has two lines")));
            }
        }
        match users.is_empty() {
            true => Err(IdentityError::new(format!("{file} holds no user: write one NAME:SHA256 per line"))),
            false => Ok(BasicVerifier { users }),
        }
    }

    /// The name and password of a request; `Ok(None)` if it shows none.
    pub(crate) fn find(evidence: &Evidence<'_>) -> Result<Option<NameAndPassword>, CredentialFailure> {
        let encoded = match authorization(evidence.headers, "Basic") {
            Presented::Nothing => return Ok(None),
            Presented::Malformed => return Err(CredentialFailure::Malformed),
            Presented::Secret(secret) if secret.len() > CREDENTIAL_BYTES_MAX => return Err(CredentialFailure::TooLong),
            Presented::Secret(secret) => secret,
        };
        let decoded = STANDARD.decode(encoded.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let decoded = decoded.ok_or(CredentialFailure::Malformed)?;
        let (name, password) = decoded.split_once(':').ok_or(CredentialFailure::Malformed)?;
        Ok(Some(NameAndPassword { name: name.to_owned(), password: KeyDigest::of(password) }))
    }

    /// An unknown name takes as long as a wrong password.
    pub(crate) fn verify(&self, shown: &NameAndPassword) -> Result<Arc<ProvenIdentity>, CredentialFailure> {
        let user = self.users.get(&shown.name);
        let known = user.map_or(KeyDigest([0; 32]), |user| user.password);
        match user.filter(|_| known.equals(&shown.password)) {
            Some(user) => Ok(user.identity.clone()),
            None => Err(CredentialFailure::WrongPassword),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(|letter| letter.is_control())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn verify(users: &BasicVerifier, value: &str) -> Result<Option<String>, CredentialFailure> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_str(value).unwrap());
        let evidence = Evidence { namespace: "default", headers: &headers, query: None, peer: None, certificate: None };
        let Some(shown) = BasicVerifier::find(&evidence)? else { return Ok(None) };
        users.verify(&shown).map(|identity| Some(identity.client_key.clone()))
    }

    #[test]
    fn the_right_password_is_accepted() {
        let users = BasicVerifier::parse("users.txt", &format!("# ours\n\nreporting:{ABC}\n")).unwrap();
        let value = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        assert_eq!(verify(&users, &value("reporting:abc")), Ok(Some("user:reporting".to_owned())));
        assert_eq!(verify(&users, &value("reporting:abd")), Err(CredentialFailure::WrongPassword));
        assert_eq!(verify(&users, &value("other:abc")), Err(CredentialFailure::WrongPassword));
        assert_eq!(verify(&users, &value("reporting")), Err(CredentialFailure::Malformed));
        assert_eq!(verify(&users, "Basic %%%"), Err(CredentialFailure::Malformed));
        assert_eq!(verify(&users, &value(&"x".repeat(2000))), Err(CredentialFailure::TooLong));
        assert_eq!(verify(&users, "Bearer abc"), Ok(None));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_its_line() {
        for (text, said) in [
            (String::new(), "holds no user"),
            (format!("a:{ABC}\nb:secret\n"), "users.txt:2: a line is NAME:SHA256"),
            (format!("a:{ABC}\na:{ABC}\n"), "users.txt:2: the user a has two lines"),
            (format!(":{ABC}\n"), "users.txt:1: "),
        ] {
            let error = BasicVerifier::parse("users.txt", &text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
