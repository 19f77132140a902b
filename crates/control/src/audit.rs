//! The chain that the rows of the audit are.
//!
//! Every row carries a SHA-256 over the hash of the row before and over all of itself. Whoever changes a row must change
//! all that follow, and the last hash also stands in `tollgate_state` and in whatever backups and logs there are.

use aws_lc_rs::digest;
use serde_json::Value;

use crate::db::{Tx, sql};
use crate::{Author, Change, Instant, Result};

/// Where the chain ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The last row's number; 0 before the first.
    pub(crate) number: i64,
    /// Its hash, in hex; empty before the first.
    pub(crate) hash: String,
}

/// A row to be written.
pub(crate) struct Entry<'a> {
    pub(crate) generation: i64,
    pub(crate) at: Instant,
    pub(crate) author: &'a Author,
    pub(crate) action: &'a str,
    pub(crate) change: &'a Change,
}

impl Entry<'_> {
    /// Writes the row behind the last one, and answers where the chain ends now.
    pub(crate) async fn write(&self, last: &Link, tx: &mut Tx) -> Result<Link> {
        let number = last.number + 1;
        let (before, after) = (self.change.before.as_ref().map(text), self.change.after.as_ref().map(text));
        let hash = hash(
            &last.hash,
            number,
            self.generation,
            self.at,
            &[
                Some(&self.author.id),
                Some(&self.author.name),
                Some(self.action),
                Some(self.change.kind.name()),
                Some(&self.change.namespace),
                Some(&self.change.id),
                before.as_deref(),
                after.as_deref(),
            ],
        );
        tx.run(sql!(
            "INSERT INTO audit \
             (number, generation, at, author, author_name, action, kind, namespace, id, before, after, hash) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            number,
            self.generation,
            self.at,
            &self.author.id,
            &self.author.name,
            self.action,
            self.change.kind.name(),
            &self.change.namespace,
            &self.change.id,
            before,
            after,
            &hash,
        ))
        .await?;
        Ok(Link { number, hash })
    }
}

fn text(value: &Value) -> String {
    value.to_string()
}

/// The hash of a row. Every field is preceded by its length, and by whether it is there at all: no two rows are the same
/// bytes.
pub(crate) fn hash(before: &str, number: i64, generation: i64, at: Instant, texts: &[Option<&str>]) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut field = |bytes: Option<&[u8]>| {
        context.update(&[u8::from(bytes.is_some())]);
        context.update(&(bytes.map_or(0, <[u8]>::len) as u64).to_be_bytes());
        context.update(bytes.unwrap_or_default());
    };
    field(Some(before.as_bytes()));
    for number in [number, generation, at.0] {
        field(Some(&number.to_be_bytes()));
    }
    texts.iter().for_each(|text| field(text.map(str::as_bytes)));
    hex(context.finish().as_ref())
}

/// Bytes as hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        text.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        text.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        text
    })
}
