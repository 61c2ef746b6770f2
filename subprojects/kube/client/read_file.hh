// Small files of credentials are read whole.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "kube/model/error.hh"

namespace kube {

// The error is kNotFound if it cannot be read.
inline Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(ErrorCode::kNotFound, path + " cannot be read");
  try {
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  } catch (const std::ios_base::failure&) {  // a folder, or an error of the disk
    return fail(ErrorCode::kNotFound, path + " cannot be read");
  }
}

}  // namespace kube
