use wasip2::filesystem::types::DescriptorType;
use workspace_files::{Path, Workspace};

use crate::exports::ambit::workspace::writing::{EditArgs, Edited};

pub fn edit(workspace: &Workspace, args: &EditArgs) -> Result<Edited, String> {
    let path = Path::parse(&args.path)?;
    if workspace.kind(&path)? == Some(DescriptorType::SymbolicLink) {
        return Err(format!("{path} is a symlink. Edit the file that it leads to."));
    }
    let text = workspace.text(&path)?;
    let (edited, changed) = replaced(&text, args).map_err(|reason| format!("{path}: {reason}"))?;
    workspace.replace(&path, &changed)?;
    Ok(edited)
}

fn replaced(text: &str, args: &EditArgs) -> Result<(Edited, String), String> {
    if args.old_text.is_empty() {
        return Err("the text to be replaced is empty.".into());
    }
    if args.old_text == args.new_text {
        return Err("the new text is the old one; nothing would change.".into());
    }
    let Some(first) = text.find(&args.old_text) else {
        return Err(format!("the text to be replaced is not there.{}", hint(text, &args.old_text)));
    };
    let count = text.matches(&args.old_text).count();
    let all = args.all.unwrap_or(false);
    if count > 1 && !all {
        return Err(format!(
            "the text to be replaced is there {count} times. Give more of the text around it, or set all to true."
        ));
    }
    let first_line = text[..first].matches('\n').count() as u32 + 1;
    Ok((
        Edited {
            replaced: count as u32,
            first_line,
        },
        text.replace(&args.old_text, &args.new_text),
    ))
}

/// What a model most often gets wrong: the spaces, or the kind of line end.
fn hint(text: &str, wanted: &str) -> &'static str {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains("\r\n") && !wanted.contains("\r\n") && wanted.contains('\n') {
        " The file's lines end in \\r\\n."
    } else if squeezed(text).contains(&squeezed(wanted)) {
        " It would be if spaces and line ends did not count: read the file again."
    } else {
        ""
    }
}
