// The client library's scripted API server, compiled for the tests here: it is no part of the
// library.
#include "kube/tests/scripted_server.cc"
