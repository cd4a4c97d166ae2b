use wasip2::filesystem::types::DescriptorType;
use workspace_files::{Path, Workspace};

use crate::exports::ambit::workspace::writing::{DeleteArgs, Deleted};

/// More than this at once is a mistake more often than not.
const MAX_COUNT: u32 = 10_000;
const MAX_DEPTH: usize = 64;

pub fn delete(workspace: &Workspace, args: &DeleteArgs) -> Result<Deleted, String> {
    let path = Path::parse(&args.path)?;
    if path.is_root() {
        return Err("The workspace itself can't be deleted.".into());
    }
    match workspace.kind(&path)? {
        None => Err(format!("There is no {path}.")),
        Some(DescriptorType::Directory) if args.recursive.unwrap_or(false) => {
            let mut count = 0;
            delete_folder(workspace, &path, 0, &mut count)?;
            Ok(Deleted { count })
        }
        Some(DescriptorType::Directory) => workspace
            .remove_folder(&path)
            .map(|()| Deleted { count: 1 })
            .map_err(|reason| format!("{reason} Set recursive to true to delete a folder with all that is in it.")),
        Some(_) => workspace.remove_file(&path).map(|()| Deleted { count: 1 }),
    }
}

/// Symlinks are removed, never followed.
fn delete_folder(workspace: &Workspace, folder: &Path, depth: usize, count: &mut u32) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("{folder} is too deep to be deleted at once; {count} entries are gone."));
    }
    for entry in workspace.entries(folder)? {
        let path = folder.join(&entry.name);
        if *count >= MAX_COUNT {
            return Err(format!(
                "More than {MAX_COUNT} entries: that many were deleted, the rest is still there."
            ));
        }
        if entry.kind == DescriptorType::Directory {
            delete_folder(workspace, &path, depth + 1, count)?;
        } else {
            workspace.remove_file(&path)?;
            *count += 1;
        }
    }
    workspace.remove_folder(folder)?;
    *count += 1;
    Ok(())
}
