//! Tokens: create, list, revoke. Secrets are returned once and never stored.

use super::{Control, Snapshot};
use crate::db::{Json, Sql, SqlRow, Tx, sql};
use crate::edit::fleet_change;
use crate::record::{Role, TokenRecord};
use crate::token_secret::TokenSecret;
use crate::write_tx::WriteTx;
use crate::{Author, Error, FieldError, Instant, RecordKind, Result};

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 200;
/// In microseconds: the last use of a token is stored to the minute.
const MINUTE: i64 = 60_000_000;

/// A token to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenDraft {
    /// Its name, to be read by people.
    pub name: String,
    /// Its permissions.
    pub role: Role,
    /// Its namespaces; `None` for all.
    pub namespaces: Option<Vec<String>>,
    /// First instant at which it is invalid.
    pub expires_at: Option<Instant>,
}

impl Snapshot {
    /// All tokens that were not revoked, oldest first.
    pub async fn tokens(&mut self) -> Result<Vec<TokenRecord>> {
        active_tokens(&mut self.tx).await
    }
}

async fn active_tokens(tx: &mut Tx) -> Result<Vec<TokenRecord>> {
    let mut query = select();
    query.and(" ORDER BY created_at, token_id", []);
    let rows = tx.all(query).await?;
    let good = |row: &SqlRow| {
        let token = read(row).inspect_err(|error| {
            let token_id = row.lossy_text(0).unwrap_or_default();
            tracing::error!(token_id, %error, "invalid row of tokens left out: the token is refused");
        });
        token.ok()
    };
    Ok(rows.iter().filter_map(good).collect())
}

impl Control {
    /// All tokens that were not revoked, oldest first. Invalid rows are logged and left out.
    pub async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.read(async |tx| active_tokens(tx).await).await
    }

    /// One token, unless it was revoked.
    pub async fn token(&self, token_id: &str) -> Result<TokenRecord> {
        self.read(async |tx| find(token_id, tx).await).await
    }

    /// Creates a token. Returns its record and the full token (`tg_<id>_<secret>`), which cannot be read again.
    pub async fn create_token(&self, draft: &TokenDraft, author: &Author) -> Result<(TokenRecord, String)> {
        let (draft, maker) = (draft.clone(), author.id.clone());
        let create = async move |write: &mut WriteTx| {
            draft.check(write.at)?;
            insert_token(&draft, &maker, write).await
        };
        self.write(author, "create", create).await.map(|(made, _)| made)
    }

    /// Revokes a token: nodes refuse it as soon as they load the change. The row stays, for readers of the audit.
    pub async fn revoke_token(&self, token_id: &str, author: &Author) -> Result<TokenRecord> {
        let token_id = token_id.to_owned();
        let revoke = async move |write: &mut WriteTx| {
            let token = find(&token_id, &mut write.tx).await?;
            let others = active_tokens(&mut write.tx).await?.into_iter().filter(|other| other.token_id != token_id);
            let opens_all = |token: &TokenRecord| token.role == Role::Admin && token.namespaces.is_none();
            let lasts = |token: &TokenRecord| token.expires_at.is_none_or(|end| end > write.at);
            if opens_all(&token) && !others.into_iter().any(|other| opens_all(&other) && lasts(&other)) {
                return Err(Error::Conflict(
                    "this is the last admin token for all namespaces; create another one before you revoke it"
                        .to_owned(),
                ));
            }
            write.tx.run(sql!("UPDATE tokens SET revoked_at = $1 WHERE token_id = $2", write.at, &token_id)).await?;
            write.record(fleet_change(RecordKind::Token, &token_id, Some(token.json()), None));
            Ok(token)
        };
        self.write(author, "revoke", revoke).await.map(|(token, _)| token)
    }

    /// Creates the first token, with the role admin, if there never was any; `None` if there was. If several nodes
    /// start at once on one database, one of them gets it.
    pub async fn first_token(&self) -> Result<Option<(TokenRecord, String)>> {
        let draft = TokenDraft { name: "first".to_owned(), role: Role::Admin, namespaces: None, expires_at: None };
        let create = async move |write: &mut WriteTx| match write.tx.one(sql!("SELECT 1 FROM tokens LIMIT 1")).await? {
            Some(_) => Ok(None),
            None => insert_token(&draft, "node", write).await.map(Some),
        };
        let author = Author { id: "node".to_owned(), name: "first start".to_owned() };
        self.write(&author, "create", create).await.map(|(made, _)| made)
    }

    /// Stores when tokens were last used, to the minute, without audit. Later instants are kept.
    pub async fn touch_tokens(&self, used: &[(String, Instant)]) -> Result<()> {
        if used.is_empty() {
            return Ok(());
        }
        let mut used = used.to_vec();
        used.sort(); // the same order on all nodes prevents deadlocks
        let touch = async move |tx: &mut Tx| {
            for (token_id, at) in &used {
                let minute = Instant(at.0 - at.0.rem_euclid(MINUTE));
                tx.run(sql!(
                    "UPDATE tokens SET last_used_at = $1 \
                     WHERE token_id = $2 AND (last_used_at IS NULL OR last_used_at < $1)",
                    minute,
                    token_id,
                ))
                .await?;
            }
            Ok(())
        };
        self.write_unaudited(touch).await
    }
}

impl TokenDraft {
    /// Validates all fields.
    fn check(&self, now: Instant) -> Result<()> {
        let mut faults = Vec::new();
        let mut fault = |field: &str, code: &str, message: String, help: &str| {
            let (field, code, help) = (field.to_owned(), code.to_owned(), Some(help.to_owned()));
            faults.push(FieldError { field, code, message, help });
        };
        if self.name.trim().is_empty() {
            fault("name", "empty", "a token needs a name".to_owned(), "say who or what will use it");
        }
        if self.name.chars().count() > NAME_CHARS_MAX {
            fault("name", "too-long", format!("longer than {NAME_CHARS_MAX} characters"), "shorten it");
        }
        if self.name.chars().any(char::is_control) {
            fault("name", "bad-character", "has a control character".to_owned(), "write it on one line");
        }
        if let Some(end) = self.expires_at.filter(|end| *end <= now) {
            fault("expires_at", "past", format!("{end} is in the past"), "choose an instant in the future, or none");
        }
        for (index, namespace) in self.namespaces.iter().flatten().enumerate() {
            if namespace.is_empty() || namespace.chars().any(char::is_control) {
                let message = format!("{namespace:?} is not a namespace");
                fault(&format!("namespaces[{index}]"), "bad-name", message, "use the name of a namespace");
            }
        }
        if self.namespaces.as_ref().is_some_and(Vec::is_empty) {
            let message = "the list of namespaces is empty".to_owned();
            fault("namespaces", "empty", message, "name some, or leave the field out for all");
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::Invalid(faults)) }
    }
}

/// Inserts a token and records the change.
async fn insert_token(draft: &TokenDraft, maker: &str, write: &mut WriteTx) -> Result<(TokenRecord, String)> {
    let secret = TokenSecret::new()?;
    let token = TokenRecord {
        token_id: secret.id().to_owned(),
        name: draft.name.clone(),
        role: draft.role,
        namespaces: draft.namespaces.clone(),
        hash: secret.hash(),
        created_at: write.at,
        created_by: maker.to_owned(),
        expires_at: draft.expires_at,
        last_used_at: None,
    };
    write
        .tx
        .run(sql!(
            "INSERT INTO tokens (token_id, name, role, namespaces, hash, created_at, created_by, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &token.token_id,
            &token.name,
            token.role.name(),
            token.namespaces.clone().map(serde_json::Value::from),
            &token.hash[..],
            token.created_at,
            &token.created_by,
            token.expires_at,
        ))
        .await?;
    write.record(fleet_change(RecordKind::Token, &token.token_id, None, Some(token.json())));
    Ok((token, secret.full_token()))
}

pub(super) async fn find(token_id: &str, tx: &mut Tx) -> Result<TokenRecord> {
    let mut query = select();
    query.and(" AND token_id = ?", [token_id.into()]);
    match tx.one(query).await? {
        Some(row) => read(&row),
        None => Err(Error::NotFound(format!("token {token_id:?}"))),
    }
}

/// Selects tokens that were not revoked.
fn select() -> Sql {
    sql!(
        "SELECT token_id, name, role, namespaces, hash, created_at, created_by, expires_at, last_used_at \
         FROM tokens WHERE revoked_at IS NULL"
    )
}

fn read(row: &SqlRow) -> Result<TokenRecord> {
    let invalid = |column: &str| Error::Unexpected(format!("column {column}: not valid for a token"));
    let role: String = row.get(2)?;
    let namespaces: Option<Json> = row.get(3)?;
    let namespaces = namespaces.map(|list| strings(list.0).ok_or_else(|| invalid("namespaces"))).transpose()?;
    let hash: Vec<u8> = row.get(4)?;
    Ok(TokenRecord {
        token_id: row.get(0)?,
        name: row.get(1)?,
        role: Role::named(&role).ok_or_else(|| invalid("role"))?,
        namespaces,
        hash: hash.try_into().map_err(|_| invalid("hash"))?,
        created_at: row.get(5)?,
        created_by: row.get(6)?,
        expires_at: row.get(7)?,
        last_used_at: row.get(8)?,
    })
}

fn strings(list: serde_json::Value) -> Option<Vec<String>> {
    match list {
        serde_json::Value::Array(list) => list.into_iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}
