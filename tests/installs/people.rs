//! Files as people keep them, below their home: those of somebody who sets little, of somebody with much of
//! their own, and of somebody on another system.

/// What one person keeps.
pub(crate) struct Kept {
    /// Who they are.
    pub(crate) name: &'static str,
    /// Their files: the path below the home, and the text.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

/// The people. The project lies at `project` in each one's home.
pub(crate) const PEOPLE: &[Kept] = &[
    Kept { name: "somebody who has nothing yet", files: &[] },
    Kept {
        name: "somebody with much of their own",
        files: &[
            (".claude/settings.json", CLAUDE),
            (".claude.json", CLAUDE_STATE),
            ("project/.claude/settings.json", "{\n  \"permissions\": { \"deny\": [\"Read(./.env)\"] }\n}\n"),
            ("project/.claude/settings.local.json", CLAUDE_LOCAL),
            ("project/.mcp.json", MCP),
            ("project/CLAUDE.md", "# This project\n\nRun `make test` first.\n"),
            (".codex/config.toml", CODEX),
            (".codex/hooks.json", CODEX_HOOKS),
            (".codex/AGENTS.md", "Answer in short sentences.\n"),
            ("project/.codex/config.toml", "# for all of us\nmodel_reasoning_effort = \"high\" # it is worth it\n"),
            ("project/AGENTS.md", "# Rules\n\n- Tabs, not spaces.\n- No force pushes.\n"),
            (".config/opencode/opencode.json", OPENCODE),
            ("project/opencode.jsonc", OPENCODE_PROJECT),
            ("project/.opencode/plugins/notify.ts", "export const Notify = async () => ({})\n"),
            (".cursor/mcp.json", CURSOR_MCP),
            (".cursor/hooks.json", CURSOR_HOOKS),
            ("project/.cursor/rules/style.mdc", "---\nalwaysApply: true\n---\nShort names.\n"),
            ("project/.gitignore", "target/\n.env\n"),
        ],
    },
    Kept {
        name: "somebody who came from another system",
        files: &[
            ("project/.claude/settings.local.json", "{\r\n\t\"permissions\": {\r\n\t\t\"allow\": []\r\n\t}\r\n}"),
            ("project/.mcp.json", "{\r\n  \"mcpServers\": {}\r\n}\r\n"),
            (".codex/config.toml", "model = \"gpt-5.5\"\r\n\r\n[mcp_servers.other]\r\ncommand = \"other\"\r\n"),
            ("project/AGENTS.md", "Be kind.\r\n\r\nBe brief."),
            ("project/opencode.json", "\u{feff}{\r\n  \"model\": \"a/b\"\r\n}\r\n"),
            (".cursor/hooks.json", "{ \"version\": 1, \"hooks\": { \"stop\": [ { \"command\": \"say done\" } ] } }"),
        ],
    },
];

const CLAUDE: &str = r#"{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "model": "opus",
  "includeCoAuthoredBy": false,
  "env": { "EDITOR": "vim" },
  "permissions": {
    "allow": ["Bash(git diff:*)", "Bash(cargo test:*)", "WebFetch(domain:docs.rs)"],
    "ask": ["Bash(git push:*)"],
    "defaultMode": "acceptEdits"
  },
  "hooks": {
    "PostToolUse": [
      {
        "matcher": "Edit|Write",
        "hooks": [{ "type": "command", "command": "jq -r .tool_input.file_path | xargs prettier --write" }]
      }
    ],
    "Stop": [{ "hooks": [{ "type": "command", "command": "afplay done.wav", "timeout": 5 }] }]
  },
  "statusLine": { "type": "command", "command": "~/.claude/statusline.sh" }
}
"#;

const CLAUDE_STATE: &str = r#"{
  "numStartups": 42,
  "mcpServers": {
    "github": { "type": "http", "url": "https://api.example.org/mcp/" }
  },
  "projects": {}
}
"#;

const CLAUDE_LOCAL: &str = r#"{
    // only here
    "permissions": {
        "allow": [
            "Bash(make:*)", // it is safe
            "mcp__github__get_issue"
        ]
    },
    "enabledMcpjsonServers": ["postgres"]
}
"#;

const MCP: &str = r#"{
  "mcpServers": {
    "postgres": {
      "command": "npx",
      "args": ["-y", "@example/server-postgres", "${DATABASE_URL}"],
      "env": {}
    }
  }
}
"#;

const CODEX: &str = r#"# Written by hand, and kept in dotfiles.
model = "gpt-5.5"
model_reasoning_effort = "medium"   # enough for most
approval_policy = "on-request"
notify = ["notify-send", "Codex"]

[shell_environment_policy]
inherit = "core"
exclude = ["AWS_*", "*_TOKEN"]

# Servers. The order is the one in which they were found useful.
[mcp_servers.docs]
command = "npx"
args = ["-y", "@example/docs"] # slow to start
startup_timeout_sec = 40

[mcp_servers.docs.env]
"API_KEY" = "secret"

[mcp_servers."with.dot"]
url = "https://example.org/mcp"

[profiles.quick]
model = "gpt-5.5-mini"

[projects."/home/u/other"]
trust_level = "trusted"

[tui]
notifications = [ "agent-turn-complete" ]
"#;

const CODEX_HOOKS: &str = r#"{
  "hooks": {
    "Stop": [
      { "hooks": [ { "type": "command", "command": "say done" } ] }
    ],
    "PreToolUse": [
      { "matcher": "shell", "hooks": [ { "type": "command", "command": "./guard.sh", "timeout": 3 } ] }
    ]
  }
}
"#;

const OPENCODE: &str = r#"{
  "$schema": "https://opencode.ai/config.json",
  "theme": "tokyonight",
  "autoshare": false,
  // the local one
  "provider": {
    "ollama": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": "http://localhost:11434/v1" },
      "models": { "small": { "name": "Small" } },
    },
  },
  "keybinds": { "leader": "ctrl+x" },
}
"#;

const OPENCODE_PROJECT: &str = r#"{
	"mcp": {
		// asks for a login once
		"tracker": { "type": "remote", "url": "https://mcp.example.org", "enabled": true }
	},
	"permission": {
		"*": "allow",
		"bash": { "git push *": "ask" } // never by itself
	},
	"agent": { "review": { "mode": "subagent", "prompt": "Review." } }
}
"#;

const CURSOR_MCP: &str = r#"{
  "mcpServers": {
    // pages
    "browser": { "command": "npx", "args": ["@example/browser@latest"] },
    "remote": { "url": "https://example.org/mcp", "headers": { "Authorization": "Bearer ${env:TOKEN}" } }
  }
}
"#;

const CURSOR_HOOKS: &str = r#"{
  "version": 1,
  "hooks": {
    "afterFileEdit": [{ "command": "./format.sh" }],
    "beforeShellExecution": [{ "command": "./guard.sh", "matcher": "rm|curl", "failClosed": true }]
  }
}
"#;
