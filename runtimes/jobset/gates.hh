// Feature gates of the JobSet controller.
#pragma once

namespace trainer::jobset {

struct Gates {
  bool in_place_restart = false;
  bool restart_job = false;
  bool elastic_jobset = false;
};

}  // namespace trainer::jobset
