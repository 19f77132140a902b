//! The tables are made once, whoever asks and however often.

use tollgate_control::{Author, Control, Place, Schema};

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_once_by_two_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::Sqlite(dir.path().join("t.db"));
    let (one, two) = (Control::open(&place).await.unwrap(), Control::open(&place).await.unwrap());
    assert!(matches!(one.schema().await.unwrap(), Schema::Behind(0, _)));
    let (a, b) = tokio::join!(
        tokio::spawn({
            let one = one.clone();
            async move { one.migrate().await }
        }),
        tokio::spawn({
            let two = two.clone();
            async move { two.migrate().await }
        })
    );
    assert_eq!(a.unwrap().unwrap() + b.unwrap().unwrap(), 1);
    assert_eq!(one.migrate().await.unwrap(), 0);
    assert_eq!(one.schema().await.unwrap(), Schema::Current);
    let author = Author { id: "cli".to_owned(), name: "me".to_owned() };
    let writers: Vec<_> = (0..32)
        .map(|n| {
            let control = if n % 2 == 0 { one.clone() } else { two.clone() };
            let author = author.clone();
            tokio::spawn(async move { control.refresh(&author).await.unwrap() })
        })
        .collect();
    let mut seen = Vec::new();
    for w in writers {
        seen.push(w.await.unwrap());
    }
    seen.sort();
    assert_eq!(seen, (1..=32).collect::<Vec<i64>>());
}
