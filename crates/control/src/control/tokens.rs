//! Tokens: made, listed, revoked. Their secrets are told once and never kept.

use super::{Control, not_yet};
use crate::record::{Role, TokenRecord};
use crate::{Author, Instant, Result};

/// What a token shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenDraft {
    /// For people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// In which namespaces; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// First instant it opens nothing any more.
    pub expires_at: Option<Instant>,
}

impl Control {
    /// All tokens that were not revoked, in the order they were made.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        not_yet()
    }

    /// Makes a token. Answers it, and the whole of it (`tg_<id>_<secret>`), which nobody will ever tell again.
    pub async fn create_token(&self, _draft: &TokenDraft, _author: &Author) -> Result<(TokenRecord, String)> {
        not_yet()
    }

    /// Revokes a token: no node takes it any more once it has heard of it.
    pub async fn revoke_token(&self, _token_id: &str, _author: &Author) -> Result<TokenRecord> {
        not_yet()
    }

    /// Makes the first token, an admin's, if there never was any; `None` if there was.
    pub async fn first_token(&self) -> Result<Option<(TokenRecord, String)>> {
        not_yet()
    }

    /// Notes when tokens were last used; not audited.
    pub async fn touch_tokens(&self, _used: &[(String, Instant)]) -> Result<()> {
        not_yet()
    }
}
