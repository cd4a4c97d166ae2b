import type { Command } from "commander";

/** A script for `source`; it completes commands, their options and files, from the program's own definition. */
export const completion = (shell: "bash" | "zsh" | "fish", program: Command): string => {
  const commands = flatten(program, []);
  switch (shell) {
    case "bash":
      return bash(commands);
    case "zsh":
      return `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`;
    case "fish":
      return fish(commands);
  }
};

interface CompletedCommand {
  readonly path: readonly string[];
  readonly description: string;
  readonly words: readonly string[];
  readonly options: readonly { readonly long: string; readonly description: string }[];
}

const flatten = (command: Command, path: readonly string[]): CompletedCommand[] => {
  const own: CompletedCommand = {
    path,
    description: command.description(),
    words: command.commands.map((child) => child.name()),
    options: [...command.options, ...command.createHelp().visibleOptions(command)]
      .filter((option, i, all) => option.long && all.findIndex((other) => other.long === option.long) === i)
      .map((option) => ({ long: option.long ?? "", description: option.description })),
  };
  return [own, ...command.commands.flatMap((child) => flatten(child, [...path, child.name()]))];
};

const bash = (commands: readonly CompletedCommand[]): string => {
  const cases = commands.map(({ path, words, options }) => {
    const choices = [...words, ...options.map(({ long }) => long)].join(" ");
    return `    "${["ambit", ...path].join(" ")}") choices="${choices}" ;;`;
  });
  return `_ambit() {
  local word="\${COMP_WORDS[COMP_CWORD]}" path="ambit" choices="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " ${commands
      .filter(({ path }) => path.length > 0)
      .map(({ path }) => `ambit ${path.join(" ")}`)
      .join(" | ")} " in
      *" $path \${COMP_WORDS[i]} "*) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
  if [[ $word != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _ambit ambit
`;
};

const fish = (commands: readonly CompletedCommand[]): string =>
  commands
    .flatMap(({ path, words, options }) => {
      const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
      const condition = path.length === 0 ? "__fish_use_subcommand" : seen;
      return [
        ...words.map((word) => {
          const child = commands.find((other) => other.path.join(" ") === [...path, word].join(" "));
          return `complete -c ambit -n '${condition}' -a ${word} -d ${fishQuoted(child?.description ?? "")}`;
        }),
        ...options.map(({ long, description }) => `complete -c ambit -n '${condition}' -l ${long.slice(2)} -d ${fishQuoted(description)}`),
      ];
    })
    .join("\n")
    .concat("\n");

const fishQuoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
