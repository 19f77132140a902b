//! Protocol files say where their Go and Java code belongs: generators refuse them, or put everything in one place.

use crate::tree;

#[test]
fn protocol_files_name_their_packages() {
    let mut count = 0;
    for file in tree::texts_ending_in(".proto").filter(|file| file.path.starts_with("proto/")) {
        count += 1;
        for option in ["go_package", "java_package", "java_multiple_files"] {
            assert!(file.text.contains(&format!("\noption {option} = ")), "{} has no option {option}", file.path);
        }
    }
    assert!(count > 0, "no files in proto/");
}
