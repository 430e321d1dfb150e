// SPDX-License-Identifier: Apache-2.0
#include "tests/browser/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "frontend/io/file.h"

extern char** environ;

namespace lockstep::testing {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr int kPatience = 60'000;  // ms for one answer; this machine may be busy

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("browser: " + what); }

struct Pipe {
  int read = -1, write = -1;
};

/// Both ends are above the numbers 3 and 4, which the browser's ends become.
Pipe makePipe() {
  int ends[2];
  if (::pipe(ends) != 0) fail("no pipe");
  const Pipe made{::fcntl(ends[0], F_DUPFD_CLOEXEC, 10), ::fcntl(ends[1], F_DUPFD_CLOEXEC, 10)};
  ::close(ends[0]);
  ::close(ends[1]);
  return made;
}

std::string decodeBase64(const std::string& text) {
  const auto value = [](char c) -> unsigned {
    if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
    if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a') + 26;
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0') + 52;
    return c == '+' ? 62 : 63;
  };
  std::string bytes;
  unsigned word = 0, bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = word << 6 | value(c);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(word >> bits & 255);
  }
  return bytes;
}

}  // namespace

/// The process and its two pipes.
struct Browser::Connection {
  Connection() = default;
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Json call(const std::string& method, Json parameters = Json::object());
  Json receive();
  void hear(const Json& event);
  void mouse(const char* type, double x, double y, int buttons, int clicks);
  Json evaluate(const std::string& expression);

  std::string profile;
  pid_t process = -1;
  int in = -1, out = -1;  // to and from the browser
  int last_id = 0;
  std::string received, session, page;
  std::set<std::string> loaded;  // loaders whose document is loaded
  std::vector<std::string> complaints, requests;
};

bool Browser::exists() { return std::system("chromium --version >/dev/null 2>&1") == 0; }

Browser::Browser(const ScratchDirectory& scratch, const std::string& options) : connection_(std::make_unique<Connection>()) {
  connection_->profile = scratch / "profile";
  ::signal(SIGPIPE, SIG_IGN);
  const Pipe to = makePipe(), from = makePipe();
  const std::string command =
      "HOME='" + connection_->profile + "' exec chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run" +
      " --remote-debugging-pipe --user-data-dir='" + connection_->profile + "' " + options + " about:blank >/dev/null 2>&1";
  std::string shell = "sh", flag = "-c", line = command;
  char* arguments[] = {shell.data(), flag.data(), line.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, to.read, 3);
  posix_spawn_file_actions_adddup2(&files, from.write, 4);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // its own group, so that all of it can be ended
  const int error = ::posix_spawn(&connection_->process, "/bin/sh", &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  ::close(to.read);
  ::close(from.write);
  connection_->in = to.write;
  connection_->out = from.read;
  if (error != 0) fail("does not start");
  const Json target = connection_->call("Target.createTarget", {{"url", "about:blank"}});
  connection_->session = connection_->call("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}})["sessionId"];
  for (const char* domain : {"Page", "Runtime", "Network", "Log"}) connection_->call(std::string(domain) + ".enable");
  resize({});
}

Browser::~Browser() = default;

Browser::Connection::~Connection() {
  if (process <= 0) return;
  session.clear();
  try {
    call("Browser.close");
  } catch (const std::exception&) {
    received.clear();  // it does not answer, so it is ended below
  }
  for (int i = 0; i < 100 && ::waitpid(process, nullptr, WNOHANG) == 0; ++i) std::this_thread::sleep_for(50ms);
  ::kill(-process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  ::close(in);
  ::close(out);
}

Json Browser::Connection::receive() {
  size_t end;
  while ((end = received.find('\0')) == std::string::npos) {
    pollfd wait{out, POLLIN, 0};
    if (::poll(&wait, 1, kPatience) <= 0) fail("gives no answer");
    char bytes[65536];
    const ssize_t count = ::read(out, bytes, sizeof(bytes));
    if (count <= 0) fail("has ended");
    received.append(bytes, static_cast<size_t>(count));
  }
  Json message = Json::parse(received.substr(0, end));
  received.erase(0, end + 1);
  return message;
}

void Browser::Connection::hear(const Json& event) {
  const std::string method = event.value("method", "");
  const Json parameters = event.value("params", Json::object());
  if (method == "Page.lifecycleEvent" && parameters["name"] == "load") loaded.insert(parameters["loaderId"]);
  if (method == "Runtime.exceptionThrown") {
    const Json& details = parameters["exceptionDetails"];
    complaints.push_back(details.contains("exception") ? details["exception"].value("description", details.dump()) : details.dump());
  } else if (method == "Runtime.consoleAPICalled" && (parameters["type"] == "error" || parameters["type"] == "warning")) {
    complaints.push_back(parameters["args"].dump());
  } else if (method == "Log.entryAdded") {
    complaints.push_back(parameters["entry"]["text"]);
  } else if (method == "Network.requestWillBeSent") {
    const std::string wanted = parameters["request"]["url"];
    if (wanted != page.substr(0, page.find('#')) && !wanted.starts_with("data:")) requests.push_back(wanted);
  }
}

Json Browser::Connection::call(const std::string& method, Json parameters) {
  Json message = {{"id", ++last_id}, {"method", method}, {"params", std::move(parameters)}};
  if (!session.empty()) message["sessionId"] = session;
  const std::string text = message.dump() + '\0';
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(in, text.data() + done, text.size() - done);
    if (count <= 0) fail("has ended before " + method);
    done += static_cast<size_t>(count);
  }
  while (true) {
    const Json answer = receive();
    if (answer.value("id", 0) != last_id) {
      hear(answer);
      continue;
    }
    if (answer.contains("error")) fail(method + ": " + answer["error"].dump());
    return answer["result"];
  }
}

void Browser::resize(const Screen& screen) {
  connection_->call("Emulation.setDeviceMetricsOverride",
                    {{"width", screen.width}, {"height", screen.height}, {"deviceScaleFactor", 1}, {"mobile", screen.width < 600}});
  const Json scheme = {{"name", "prefers-color-scheme"}, {"value", screen.dark ? "dark" : "light"}};
  connection_->call("Emulation.setEmulatedMedia", {{"features", Json::array({scheme})}});
}

void Browser::open(const std::string& url) {
  connection_->call("Page.setLifecycleEventsEnabled", {{"enabled", true}});
  connection_->call("Page.navigate", {{"url", "about:blank"}});  // an address that differs in what follows '#' only would keep the document
  connection_->complaints.clear();
  connection_->requests.clear();
  connection_->page = url;
  const Json opened = connection_->call("Page.navigate", {{"url", url}});
  if (opened.contains("errorText")) fail(url + ": " + opened["errorText"].dump());
  while (!connection_->loaded.contains(opened["loaderId"])) connection_->hear(connection_->receive());
}

Json Browser::Connection::evaluate(const std::string& expression) {
  const Json answer = call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails")) fail(expression + ": " + answer["exceptionDetails"].dump());
  return answer["result"].value("value", Json());
}

void Browser::waitFor(const std::string& expression) {
  for (int i = 0; i < 100; ++i) {
    if (connection_->evaluate("!!(" + expression + ")") == true) return;
    std::this_thread::sleep_for(100ms);
  }
  fail("never true: " + expression);
}

std::pair<double, double> Browser::middleOf(const std::string& selector) {
  const Json place = connection_->evaluate("(() => { const node = document.querySelector(" + Json(selector).dump() +
                                           "); node.scrollIntoView({ block: 'center' }); const box = node.getBoundingClientRect(); "
                                           "return [box.x + box.width / 2, box.y + box.height / 2]; })()");
  return {place[0], place[1]};
}

void Browser::Connection::mouse(const char* type, double x, double y, int buttons, int clicks) {
  call("Input.dispatchMouseEvent",
       {{"type", type}, {"x", x}, {"y", y}, {"button", buttons || clicks ? "left" : "none"}, {"buttons", buttons}, {"clickCount", clicks}});
}

std::string Browser::evaluate(const std::string& expression) { return connection_->evaluate(expression).dump(); }

void Browser::move(double x, double y) { connection_->mouse("mouseMoved", x, y, 0, 0); }

const std::vector<std::string>& Browser::requests() const { return connection_->requests; }

void Browser::click(double x, double y, int times) {
  move(x, y);
  for (int i = 1; i <= times; ++i) {
    connection_->mouse("mousePressed", x, y, 1, i);
    connection_->mouse("mouseReleased", x, y, 0, i);
  }
}

void Browser::drag(double x1, double y1, double x2, double y2) {
  move(x1, y1);
  connection_->mouse("mousePressed", x1, y1, 1, 1);
  connection_->mouse("mouseMoved", (x1 + x2) / 2, (y1 + y2) / 2, 1, 0);
  connection_->mouse("mouseMoved", x2, y2, 1, 0);
  connection_->mouse("mouseReleased", x2, y2, 0, 1);
}

void Browser::capture(const std::string& path, bool whole_page) {
  Json options = {{"format", "png"}};
  if (whole_page) {
    const Json size = connection_->call("Page.getLayoutMetrics")["cssContentSize"];
    options["captureBeyondViewport"] = true;
    options["clip"] = {{"x", 0}, {"y", 0}, {"width", size["width"]}, {"height", size["height"]}, {"scale", 1}};
  }
  const std::string png = decodeBase64(connection_->call("Page.captureScreenshot", options)["data"]);
  if (!io::writeFileAtomically(path, std::string_view(png)).ok()) fail("cannot write " + path);
}

std::vector<std::string> Browser::complaints() {
  // What is under way is heard before the answer.
  connection_->evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))");
  return connection_->complaints;
}

std::string Browser::toolsAddress() {
  const std::string file = connection_->profile + "/DevToolsActivePort";
  for (int i = 0; i < 100 && !std::filesystem::exists(file); ++i) std::this_thread::sleep_for(100ms);
  std::string port;
  std::getline(std::ifstream(file) >> std::ws, port);
  if (port.empty()) fail("serves no pages of its own");
  return "http://127.0.0.1:" + port;
}

std::string pictureFile(const ScratchDirectory& scratch, const std::string& name) {
  const char* folder = std::getenv("LOCKSTEP_PICTURES");
  return folder ? std::string(folder) + "/" + name : (scratch / name).string();
}

}  // namespace lockstep::testing
