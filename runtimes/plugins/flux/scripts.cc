#include "runtimes/plugins/flux/scripts.hh"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "runtimes/lifecycle/processes.hh"

namespace trainer::pipeline::flux {

namespace {

constexpr std::string_view kInit = R"SH(#!/bin/bash
# Prepares the volume that Flux and the training container share. Running it twice does no harm.
set -e
config=/mnt/flux/config
mkdir -p "$config/etc/flux/system/cron.d" "$config/etc/flux/config" "$config/etc/curve" \
  "$config/var/lib/flux" "$config/run/flux" /mnt/flux/view

echo '@HOSTS@' > "$config/etc/flux/system/hostlist"

cat > "$config/etc/flux/config/broker.toml" <<'TOML'
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = 8050
default_bind = "tcp://@DEVICE@:%p"
default_connect = "tcp://%h.@DOMAIN@:%p"
hosts = [
  { host = "@HOSTS@" },
]

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = "@QUEUE_POLICY@"
TOML

# The image holds exactly one view, under a name that changes with each build.
for view in /opt/views/._view/*; do
  cp -R "$view"/* /mnt/flux/view/
done
# The view links into this folder, so the training container gets it at the same place.
cp -R /opt/software /mnt/flux/
touch /mnt/flux/flux-operator-done.txt
)SH";

constexpr std::string_view kEntrypoint = R"SH(#!/bin/bash
# Starts this pod's broker. The lead broker runs the command given as arguments; the others serve it until it ends.
view=/mnt/flux/view
config=/mnt/flux/config
# The command comes as one string, whose words are its arguments, or after "--" word by word.
if [ "${1:-}" = -- ]; then
  shift
  command=("$@")
else
  # shellcheck disable=SC2048,SC2206
  command=($*)
fi

# Behind the image's own programs: where both have one, the training's wins.
export PATH="$PATH:$view/bin"
cp -R /mnt/flux/software/* /opt/software/

# Flux brings a python of its own, which its tools must find under the name they were built with.
python_root=$(find "$view/lib" -maxdepth 1 -type d -name 'python3*' 2>/dev/null | head -n 1)
python="$view/bin/$(basename "$python_root")"
if [ -f "$python" ]; then
  rm -rf "$view/bin/python3" "$view/bin/python"
  ln -s "$python" "$view/lib/python" 2>/dev/null || true
  ln -s "$python" "$view/lib/python3" 2>/dev/null || true
fi
export PYTHONPATH="${PYTHONPATH:-}:$python_root/site-packages"
export FLUX_RC_EXTRA="$view/etc/flux/rc1.d"

# For people who look into a running pod: `. /mnt/flux/flux-view.sh`, then `flux proxy $fluxsocket bash`.
cat > /mnt/flux/flux-view.sh <<EOF
#!/bin/bash
export PATH=$PATH
export PYTHONPATH=$PYTHONPATH
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$view/lib
export fluxsocket=local://$config/run/flux/local
EOF
cat > /mnt/flux/load-fluxion.sh <<'EOF'
flux module remove sched-simple
flux module load sched-fluxion-resource
flux module load sched-fluxion-qmanager
EOF

# A broker refuses a certificate that others can read, and a mounted Secret cannot change its owner.
certificate="$config/etc/curve/curve.cert"
cp /curve/curve.cert "$certificate"
chmod go-r "$certificate"
chown "$(id -u)" "$certificate"

flux R encode --hosts="$(cat "$config/etc/flux/system/hostlist")" @RESOURCES@ > "$config/etc/flux/system/R"

export STATE_DIR="$config/var/lib/flux"
export FLUX_OUTPUT_DIR=/tmp/fluxout
mkdir -p "$STATE_DIR" "$FLUX_OUTPUT_DIR" "$config/etc/flux/system/cron.d"
options=(
  "-Scron.directory=$config/etc/flux/system/cron.d"
  -Stbon.fanout=256
  "-Srundir=$config/run/flux"
  "-Sstatedir=$STATE_DIR"
  "-Slocal-uri=local://$config/run/flux/local"
  -Slog-stderr-level=0
  -Slog-stderr-mode=local
)

if [ "$(hostname)" = '@LEAD@' ]; then
  if [ ${#command[@]} -eq 0 ]; then
    echo 'No command: the Flux instance waits for people to use it.'
    exec flux broker --config-path "$config/etc/flux/config" "${options[@]}"
  fi
  exec flux start -o --config "$config/etc/flux/config" "${options[@]}" flux run @FLAGS@ "${command[@]}"
fi

# The lead broker may come up later than this one.
until flux start -o --config "$config/etc/flux/config" "${options[@]}"; do
  echo "The broker ended with $?; trying again in 15 seconds."
  sleep 15
done
)SH";

std::string fill(std::string_view text,
                 const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out(text);
  for (const auto& [mark, value] : values)
    for (std::size_t at = out.find(mark); at != std::string::npos;
         at = out.find(mark, at + value.size()))
      out.replace(at, mark.size(), value);
  return out;
}

}  // namespace

std::string index_range(std::int64_t count) {
  return count > 1 ? fmt::format("0-{}", count - 1) : "0";
}

std::string init_script(const Instance& instance) {
  return fill(kInit, {{"@HOSTS@", instance.hosts},
                      {"@DEVICE@", instance.network_device},
                      {"@DOMAIN@", instance.domain},
                      {"@QUEUE_POLICY@", instance.queue_policy}});
}

std::string entrypoint_script(const Instance& instance) {
  std::string resources = "--cores=" + index_range(instance.tasks);
  std::string flags =
      fmt::format("-N {} -n {}", instance.nodes, process_count(instance.nodes, instance.tasks));
  if (instance.accelerators > 0) {
    resources += " --gpus=" + index_range(instance.accelerators);
    // The option -g is a whole number of accelerators for each task.
    if (instance.accelerators >= instance.tasks)
      flags += fmt::format(" -g {}", instance.accelerators / instance.tasks);
  }
  return fill(kEntrypoint,
              {{"@RESOURCES@", resources}, {"@FLAGS@", flags}, {"@LEAD@", instance.lead}});
}

}  // namespace trainer::pipeline::flux
