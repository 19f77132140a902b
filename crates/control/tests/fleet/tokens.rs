//! Tokens are returned once, stored as hashes, and invalid rows grant nothing.

use aws_lc_rs::digest::{SHA256, digest};
use tollgate_control::record::Role;
use tollgate_control::{Error, Instant, TokenDraft};

use crate::databases::{author, on_both};

const MINUTE: i64 = 60_000_000;

fn draft(name: &str) -> TokenDraft {
    TokenDraft { name: name.to_owned(), role: Role::Operator, namespaces: None, expires_at: None }
}

fn ids(tokens: &[tollgate_control::record::TokenRecord]) -> Vec<&str> {
    tokens.iter().map(|token| token.token_id.as_str()).collect()
}

on_both! {
    async fn a_token_is_returned_once_and_stored_as_a_hash(db: Database) {
        let draft = TokenDraft {
            name: "Robert'); DROP TABLE tokens; -- \u{1f980}".to_owned(),
            role: Role::Viewer,
            namespaces: Some(vec!["shop".to_owned(), "näme".to_owned()]),
            expires_at: Some(Instant::parse("2550-01-01T00:00:00.000001Z").unwrap()),
        };
        let (token, whole) = db.control.create_token(&draft, &author()).await.unwrap();
        assert_eq!((&token.name, token.role, &token.namespaces), (&draft.name, draft.role, &draft.namespaces));
        assert_eq!((token.expires_at, token.last_used_at), (draft.expires_at, None));
        assert_eq!(token.created_by, "cli");
        let secret = whole.strip_prefix(&format!("tg_{}_", token.token_id)).unwrap();
        assert_eq!(digest(&SHA256, secret.as_bytes()).as_ref(), token.hash);
        assert_eq!(db.node().tokens().await.unwrap(), std::slice::from_ref(&token));
        assert_eq!(db.control.state().await.unwrap().generation, 1, "nodes hear of it");
        let audit = db.texts("SELECT action || ' ' || author || ' ' || id || ' ' || after FROM audit").await;
        assert!(audit[0].starts_with(&format!("create cli {} {{", token.token_id)), "{audit:?}");
        let hash: String = token.hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!audit[0].contains(secret) && !audit[0].contains(&hash) && !audit[0].contains("hash"), "{audit:?}");
        assert!(!format!("{token:?}").contains("hash"));
    }

    async fn a_revoked_token_is_refused_and_its_row_stays(db: Database) {
        let (first, _) = db.control.create_token(&draft("first"), &author()).await.unwrap();
        let (second, _) = db.control.create_token(&draft("second"), &author()).await.unwrap();
        assert_eq!(ids(&db.control.tokens().await.unwrap()), [&first.token_id, &second.token_id]);
        assert_eq!(db.control.revoke_token(&first.token_id, &author()).await.unwrap(), first);
        assert_eq!(db.control.tokens().await.unwrap(), [second]);
        let kept = db.texts("SELECT name FROM tokens WHERE revoked_at IS NOT NULL").await;
        assert_eq!(kept, ["first"]);
        for gone in [first.token_id.as_str(), "", "unknown", "' OR 1=1 --"] {
            let error = db.control.revoke_token(gone, &author()).await.unwrap_err();
            assert!(matches!(&error, Error::NotFound(what) if what.contains("token")), "{error}");
        }
        let audit = db.texts("SELECT action || ' ' || COALESCE(after, 'gone') FROM audit ORDER BY number").await;
        assert_eq!((audit.len(), audit[2].as_str()), (3, "revoke gone"));
    }

    async fn one_of_eight_nodes_gets_the_first_token(db: Database) {
        let nodes: Vec<_> = (0..8).map(|_| {
            let node = db.node();
            tokio::spawn(async move { node.first_token().await.unwrap() })
        }).collect();
        let mut made = Vec::new();
        for node in nodes {
            made.extend(node.await.unwrap());
        }
        assert_eq!(made.len(), 1);
        let (token, whole) = &made[0];
        assert_eq!((token.role, &token.namespaces, token.created_by.as_str()), (Role::Admin, &None, "node"));
        assert!(whole.starts_with("tg_"));
        assert_eq!(db.control.state().await.unwrap().generation, 1, "who got none changed nothing");
        let refused = db.control.revoke_token(&token.token_id, &author()).await.unwrap_err();
        assert!(matches!(refused, Error::Conflict(_)), "the last admin's: {refused}");
        let other = TokenDraft { role: Role::Admin, namespaces: None, expires_at: None, ..draft("another") };
        db.control.create_token(&other, &author()).await.unwrap();
        db.control.revoke_token(&token.token_id, &author()).await.unwrap();
        assert_eq!(db.control.first_token().await.unwrap(), None, "there was one once");
    }

    async fn last_use_is_stored_to_the_minute_and_only_moves_forward(db: Database) {
        let (used, _) = db.control.create_token(&draft("used"), &author()).await.unwrap();
        let (idle, _) = db.control.create_token(&draft("idle"), &author()).await.unwrap();
        let touch = async |at: i64| {
            let touched = [("unknown".to_owned(), Instant(at)), (used.token_id.clone(), Instant(at))];
            db.node().touch_tokens(&touched).await.unwrap();
            let tokens = db.control.tokens().await.unwrap();
            assert_eq!((tokens[1].token_id.as_str(), tokens[1].last_used_at), (idle.token_id.as_str(), None));
            tokens[0].last_used_at
        };
        assert_eq!(touch(10 * MINUTE + 1).await, Some(Instant(10 * MINUTE)));
        assert_eq!(touch(9 * MINUTE).await, Some(Instant(10 * MINUTE)), "another node was slow to tell");
        assert_eq!(touch(11 * MINUTE - 1).await, Some(Instant(10 * MINUTE)));
        assert_eq!(touch(11 * MINUTE).await, Some(Instant(11 * MINUTE)));
        db.control.touch_tokens(&[]).await.unwrap();
        assert_eq!(db.control.state().await.unwrap().generation, 2, "a use is no change");
    }

    async fn nodes_store_uses_of_the_same_tokens_at_once(db: Database) {
        let mut tokens = Vec::new();
        for n in 0..5 {
            tokens.push(db.control.create_token(&draft(&n.to_string()), &author()).await.unwrap().0.token_id);
        }
        let nodes: Vec<_> = (1..=8).map(|n| {
            let (node, mut tokens) = (db.node(), tokens.clone());
            tokens.rotate_left(n % 5);
            tokio::spawn(async move {
                for round in 0..10 {
                    let at = Instant(MINUTE * (round * 8 + n as i64));
                    let used: Vec<_> = tokens.iter().map(|token| (token.clone(), at)).collect();
                    node.touch_tokens(&used).await.unwrap();
                }
            })
        }).collect();
        for node in nodes {
            node.await.unwrap();
        }
        let used = db.control.tokens().await.unwrap();
        assert!(used.iter().all(|token| token.last_used_at == Some(Instant(MINUTE * 80))), "{used:?}");
    }

    async fn an_invalid_draft_is_refused_with_every_reason(db: Database) {
        let bad = TokenDraft {
            name: " \0".to_owned(),
            role: Role::Admin,
            namespaces: Some(vec!["shop".to_owned(), String::new()]),
            expires_at: Some(Instant(1)),
        };
        let refused = async |draft: &TokenDraft| match db.control.create_token(draft, &author()).await {
            Err(Error::Invalid(faults)) => faults.into_iter().map(|fault| fault.field).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&bad).await, ["name", "expires_at", "namespaces[1]"]);
        let long = TokenDraft { name: "x".repeat(201), namespaces: Some(Vec::new()), ..draft("") };
        assert_eq!(refused(&long).await, ["name", "namespaces"]);
        assert_eq!(refused(&draft("")).await, ["name"]);
        assert_eq!(db.control.state().await.unwrap().generation, 0);
        assert!(db.control.tokens().await.unwrap().is_empty());
    }

    async fn an_invalid_row_grants_nothing_and_the_rest_works(db: Database) {
        let (good, _) = db.control.create_token(&draft("good"), &author()).await.unwrap();
        for (column, nonsense) in [("role", "'root'"), ("namespaces", "'{\"a\": 1}'"), ("namespaces", "'[1]'")] {
            let (bad, _) = db.control.create_token(&draft("bad"), &author()).await.unwrap();
            db.run(&format!("UPDATE tokens SET {column} = {nonsense} WHERE token_id = '{}'", bad.token_id)).await;
        }
        assert_eq!(db.control.tokens().await.unwrap(), [good]);
    }
}
