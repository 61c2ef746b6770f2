// .gitignore and .trainerignore mean what git means. tests/local/run_test.py compares random
// patterns with `git check-ignore`.
#include "controller/cli/code_ignore.hh"

#include "tests/support/catch.hh"

using namespace trainer;

TEST_CASE("globs match as in git") {
  struct Row {
    const char* pattern;
    const char* path;
    bool matches;
  };
  const Row rows[] = {
      {"a", "a", true},
      {"a", "b", false},
      {"*.o", "x.o", true},
      {"*.o", "d/x.o", false},
      {"?", "/", false},
      {"a?c", "abc", true},
      {"a/**", "a/b/c", true},
      {"a/**", "a", false},
      {"**/c", "c", true},
      {"**/c", "a/b/c", true},
      {"a/**/c", "a/c", true},
      {"a/**/c", "a/b/b/c", true},
      {"a/**/c", "abc", false},
      {"a**c", "abbc", true},
      {"a**c", "a/c", false},
      {"**", "a/b", true},
      {"[a-c]x", "bx", true},
      {"[!a-c]x", "bx", false},
      {"[^a-c]x", "dx", true},
      {"[]]", "]", true},
      {"[]-]", "-", true},
      {"[a", "a", false},
      {"[[:digit:]]", "7", true},
      {"[[:digit:]]", "x", false},
      {"[[:upper:][:digit:]_]", "_", true},
      {"[!a]", "/", false},
      {"\\*", "*", true},
      {"\\*", "x", false},
      {"[\\]]", "]", true},
      {"x\\", "x", false},
      {"", "", true},
      {"*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
       false},
  };
  for (const Row& row : rows) {
    INFO(row.pattern << " and " << row.path);
    CHECK(matches_glob(row.pattern, row.path) == row.matches);
  }
}

TEST_CASE("the last rule that matches decides") {
  constexpr const char* kText =
      "\xef\xbb\xbf*.log\r\n"
      "# a comment\n"
      "\\#file\n"
      "!keep.log\n"
      "build/\n"
      "/top\n"
      "docs/*.txt\n"
      "spaces   \n"
      "space\\ \n"
      "\\!not\n"
      "/\n"
      "data/**\n"
      "!data/small.bin";
  struct Row {
    const char* path;
    bool is_directory;
    std::optional<bool> is_ignored;
  };
  const Row rows[] = {
      {"x.log", false, true},
      {"d/x.log", false, true},
      {"keep.log", false, false},
      {"d/keep.log", false, false},
      {"# a comment", false, std::nullopt},
      {"#file", false, true},
      {"build", true, true},
      {"build", false, std::nullopt},
      {"d/build", true, true},
      {"top", false, true},
      {"d/top", false, std::nullopt},
      {"docs/a.txt", false, true},
      {"docs/b/a.txt", false, std::nullopt},
      {"d/docs/a.txt", false, std::nullopt},
      {"spaces", false, true},
      {"space ", false, true},
      {"!not", false, true},
      {"data", true, std::nullopt},
      {"data/large.bin", false, true},
      {"data/small.bin", false, false},
      {"other", false, std::nullopt},
  };
  IgnoreRules rules;
  rules.add(kText);
  for (const Row& row : rows) {
    INFO(row.path);
    CHECK(rules.is_ignored(row.path, row.is_directory) == row.is_ignored);
  }
  // Those of a later file come first.
  rules.add("!*.log\nother");
  CHECK(rules.is_ignored("x.log", false) == std::optional(false));
  CHECK(rules.is_ignored("other", false) == std::optional(true));
}

TEST_CASE("secrets are known by their names, and code is none") {
  for (const char* secret : {".env",
                             ".env.local",
                             "prod.env",
                             "server.pem",
                             "TLS.KEY",
                             "id_rsa",
                             "id_ed25519.pub",
                             ".netrc",
                             ".aws",
                             ".ssh",
                             ".kube",
                             "hf_token",
                             "token",
                             "my-token.txt",
                             "API_TOKEN.json",
                             "wandb.token",
                             "credentials",
                             "credentials.json",
                             "client_secret.json",
                             "secrets.yaml",
                             ".git-credentials",
                             "kubeconfig",
                             "passwords.csv",
                             ".npmrc"}) {
    INFO(secret);
    CHECK(is_secret_name(secret));
  }
  for (const char* code :
       {"tokenizer.py", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "token.py", "secrets.py", "train.py", "environment.yml", "keys.py",
        "secretary.txt", "envs", ".gitignore", "Makefile", "pyproject.toml"}) {
    INFO(code);
    CHECK_FALSE(is_secret_name(code));
  }
}
