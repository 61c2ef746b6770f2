// These are names for coroutines. Everything in this folder runs on the one thread that runs its
// io_context (in other comments: the io thread), unless a class says otherwise.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>

#include "kube/model/error.hh"

namespace kube {

namespace asio = boost::asio;
using Milliseconds = std::chrono::milliseconds;

template <class T>
using Task = asio::awaitable<T>;

}  // namespace kube
