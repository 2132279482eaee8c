// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Tests the Rust recipe of docs/cookbook.md in a new project, as a reader would run it.
//! The recipe has to print the output that the page shows.

use std::path::Path;
use std::process::Command;

/// Returns the page's first code block in `language` after the line that names the file.
fn block<'a>(page: &'a str, name: &str, language: &str) -> &'a str {
    let named = page.split(&format!("\n`{name}`:\n")).nth(1).expect(name);
    let body = named.split(&format!("\n```{language}\n")).nth(1).expect(language);
    body.split("```\n").next().unwrap()
}

#[test]
fn the_recipe_prints_the_output_of_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/cookbook.md")).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")); // a subfolder of Cargo's target folder
    let project = folder.join("cookbook");
    std::fs::create_dir_all(project.join("src")).unwrap();
    let write = |file: &str, text: &str| std::fs::write(project.join(file), text).unwrap();
    write("config.json", block(&page, "config.json", "json"));
    write("src/main.rs", block(&page, "main.rs", "rust"));
    let package = "[package]\nname = \"cookbook\"\nversion = \"0.0.0\"\nedition = \"2021\"\n";
    write("Cargo.toml", &format!("{package}[dependencies]\nswitchyard = {{ path = {root:?} }}\n"));

    let cargo = std::env::var_os("CARGO").expect("Cargo sets CARGO");
    // The new project shares the target folder of this test, to avoid a second build of
    // the crate.
    let run = Command::new(cargo)
        .args(["run", "--quiet", "--offline", "--target-dir"])
        .arg(folder.parent().unwrap())
        .current_dir(&project)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout), block(&page, "main.rs", "text"));
}
