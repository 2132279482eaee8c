// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Links the library that is installed below `SWITCHYARD_PREFIX`. Without that
//! variable, builds one with CMake: from the `native` folder of a published crate, or
//! from the repository around this crate.

mod abi;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

fn fail(message: &str) -> ! {
    eprintln!("switchyard: {}", message);
    exit(1)
}

fn run(command: &mut Command) -> Vec<u8> {
    match command.output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => fail(&format!(
            "{:?} failed:\n{}{}",
            command,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => fail(&format!("{:?}: {}", command, error)),
    }
}

fn build() -> PathBuf {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = match crate_folder.join("native") {
        published if published.is_dir() => published,
        _ => crate_folder.join("../.."),
    };
    for folder in ["CMakeLists.txt", "cmake", "include", "src"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let (build, prefix) = (out.join("build"), out.join("prefix"));
    // By default CMake would choose make. A machine with Ninja may not have make.
    if env::var_os("CMAKE_GENERATOR").is_none()
        && Command::new("ninja").arg("--version").output().is_ok()
    {
        env::set_var("CMAKE_GENERATOR", "Ninja");
    }
    run(Command::new("cmake").arg("-S").arg(&root).arg("-B").arg(&build).args([
        "-DCMAKE_BUILD_TYPE=Release",
        "-DSWITCHYARD_BUILD_TESTS=OFF",
        "-DSWITCHYARD_BUILD_EXAMPLES=OFF",
        "-DSWITCHYARD_BUILD_TOOLS=OFF",
        "-DSWITCHYARD_DEVICE=OFF",
        "-DSWITCHYARD_INSTALL=ON",
    ]));
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".into());
    run(Command::new("cmake").arg("--build").arg(&build).args(["--parallel", &jobs]));
    run(Command::new("cmake").arg("--install").arg(&build).arg("--prefix").arg(&prefix));
    prefix
}

/// Returns the folder that has switchyard-c.pc: lib/pkgconfig, lib64/pkgconfig or
/// lib/TRIPLE/pkgconfig.
fn find_pc(folder: &Path, depth: usize) -> Option<PathBuf> {
    if folder.join("switchyard-c.pc").is_file() {
        return Some(folder.to_path_buf());
    }
    let entries = folder.read_dir().ok().filter(|_| depth > 0)?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .find_map(|path| find_pc(&path, depth - 1))
}

/// Writes the files that the crate includes, from the headers of the linked library.
fn write_abi(prefix: &Path) {
    let folder = prefix.join("include/switchyard/c");
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder)
        .unwrap_or_else(|error| fail(&format!("{}: {}", folder.display(), error)));
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        fs::read_to_string(path)
            .unwrap_or_else(|error| fail(&format!("{}: {}", path.display(), error)))
    };
    let headers: Vec<String> = paths.iter().map(read).collect();
    let files = abi::translate(&headers)
        .unwrap_or_else(|error| fail(&format!("{}: {}", folder.display(), error)));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for (name, text) in files {
        if let Err(error) = fs::write(out.join(name), text) {
            fail(&format!("{}: {}", name, error));
        }
    }
}

fn main() {
    println!("cargo:rerun-if-changed=abi.rs");
    println!("cargo:rerun-if-env-changed=SWITCHYARD_PREFIX");
    let prefix = env::var_os("SWITCHYARD_PREFIX").map_or_else(build, PathBuf::from);
    let folder = find_pc(&prefix, 3).unwrap_or_else(|| {
        fail(&format!("SWITCHYARD_PREFIX: no switchyard-c.pc below {}", prefix.display()))
    });
    println!("cargo:rerun-if-changed={}", folder.display());
    write_abi(&prefix);
    let flags = run(Command::new("pkg-config").env("PKG_CONFIG_PATH", &folder).args([
        "--libs",
        "--static",
        "switchyard-c",
    ]));
    for flag in String::from_utf8_lossy(&flags).split_whitespace() {
        if let Some(path) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={}", path);
        } else if let Some(name) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={}", name);
        } else if flag == "-pthread" {
            println!("cargo:rustc-link-lib=pthread");
        }
    }
}
