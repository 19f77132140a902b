//! Once its buffers have grown, a connection allocates nothing, however many commands come.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, command, five};

/// What the rest of the server does meanwhile: a look at its files each second, a timer or two.
const OTHERS: u64 = 64;

#[test]
fn commands_allocate_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_rig, mut caller) = runtime.block_on(async {
        let rig = Rig::start();
        let caller = rig.caller().await;
        (rig, caller)
    });
    let throttle = [
        (
            command(&["CL.THROTTLE", "some key", "1000000000", "1", "1", "0"]),
            five([0, 1_000_000_001, 1_000_000_001, -1, 0]),
        ),
        (b"PING\r\n".to_vec(), b"+PONG\r\n".to_vec()),
    ];
    let check = (command(&["TG.PEEK", "client_key=a", "endpoint=GET /x"]), 0);
    let (sent, expected): (Vec<_>, Vec<_>) = throttle.into_iter().unzip();
    let (sent, expected) = (sent.concat().repeat(20), expected.concat().repeat(20));
    let mut came = vec![0; expected.len()];
    let mut turn = |times: usize| {
        runtime.block_on(async {
            for _ in 0..times {
                caller.stream.write_all(&sent).await.unwrap();
                caller.stream.read_exact(&mut came).await.unwrap();
                assert!(came == expected);
            }
        });
    };
    turn(20);
    let measured = allocation_counter::measure(|| turn(250));
    assert!(measured.count_total < OTHERS, "10,000 commands: {measured:?}");

    let mut came = vec![0; 64 << 10];
    let mut turn = |times: usize| {
        runtime.block_on(async {
            for _ in 0..times {
                caller.stream.write_all(&check.0).await.unwrap();
                assert!(caller.stream.read(&mut came).await.unwrap() > 100);
            }
        });
    };
    turn(20);
    let measured = allocation_counter::measure(|| turn(1000));
    assert!(measured.count_total < OTHERS, "1,000 checks: {measured:?}");
}
