// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/text/jinja/builtins.h"

namespace lockstep::text::jinja {
namespace {

constexpr uint64_t kMostSteps = 20'000'000;
constexpr size_t kMostDepth = 400;
constexpr uint64_t kBytesPerStep = 64;

struct Scope {
  std::map<std::string, Value, std::less<>> variables;
  Scope* outer = nullptr;
};

enum class Flow : uint8_t { Next, Break, Continue };

class Interpreter {
 public:
  explicit Interpreter(const std::map<std::string, Value>& variables) {
    scope_ = newScope(nullptr);
    for (const auto& [name, value] : variables) scope_->variables[name] = value;
    scope_->variables.emplace("range", Value::function("range", range));
    scope_->variables.emplace("dict", Value::function("dict", dict));
    scope_->variables.emplace("namespace",
                              Value::function("namespace", [this](const Arguments& arguments) { return makeNamespace(arguments); }));
    scope_ = newScope(scope_);
  }
  // Macros hold scopes and namespaces may hold each other: nothing of them outlives the run.
  ~Interpreter() {
    for (const auto& scope : scopes_) scope->variables.clear();
    for (const auto& space : spaces_) space->members.clear();
    for (const auto& loop : loops_) loop->last_changed.clear();
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  std::string render(const Statements& statements) {
    try {
      run(statements);
    } catch (const TemplateFailure& failure) {
      throw TemplateFailure(failure.kind, failure.what(), failure.line != 0 ? failure.line : line_);
    }
    return std::move(out_);
  }

 private:
  class Deeper {
   public:
    explicit Deeper(Interpreter& owner) : owner_(owner) {
      if (owner_.depth_ >= kMostDepth) throw TemplateFailure(TemplateFailure::Kind::Limit, "macros or expressions nest too deeply");
      ++owner_.depth_;
    }
    ~Deeper() { --owner_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Interpreter& owner_;
  };
  /// A scope inside of `outer` until the end of this one. Where a macro was made meanwhile, it may still need the variables.
  class Within {
   public:
    Within(Interpreter& owner, Scope* outer)
        : owner_(owner), macros_(owner.macros_), scope_(owner.newScope(outer)), before_(std::exchange(owner.scope_, scope_)) {}
    ~Within() {
      owner_.scope_ = before_;
      if (owner_.macros_ == macros_ && owner_.scopes_.back().get() == scope_) owner_.scopes_.pop_back();
    }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;
    [[nodiscard]] Scope& scope() const { return *scope_; }

   private:
    Interpreter& owner_;
    size_t macros_;
    Scope* scope_;
    Scope* before_;
  };

  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > kMostSteps) throw TemplateFailure(TemplateFailure::Kind::Limit, "the template takes too many steps");
  }
  /// What a value costs to make or to go through.
  void pay(const Value& value) {
    if (value.text() != nullptr) step(value.text()->size() / kBytesPerStep);
    if (value.list() != nullptr) step(value.list()->items.size());
    if (value.dict() != nullptr) step(value.dict()->items.size());
  }
  Scope* newScope(Scope* outer) {
    scopes_.push_back(std::make_unique<Scope>());
    scopes_.back()->outer = outer;
    return scopes_.back().get();
  }
  void write(const std::string& text) {
    step(text.size() / kBytesPerStep);
    checkLength(out_.size() + text.size());
    out_ += text;
  }
  /// What the statements write.
  std::string capture(const Statements& statements) {
    std::string before = std::exchange(out_, {});
    run(statements);
    return std::exchange(out_, std::move(before));
  }

  static Value range(const Arguments& arguments) {
    Reader reader("range", arguments);
    const int64_t first = reader.whole("start", 0);
    const Value* stop = reader.get("stop");
    const int64_t by = reader.whole("step", 1);
    reader.done();
    if (stop != nullptr && !stop->isWhole()) failRender(fmt::format("'{}' object cannot be interpreted as an integer", stop->typeName()));
    const int64_t begin = stop == nullptr ? 0 : first, end = stop == nullptr ? first : stop->whole();
    if (by == 0) failRender("range() arg 3 must not be zero");
    constexpr size_t kMost = 100'000;
    Values items;
    for (int64_t i = begin; by > 0 ? i < end : i > end;) {
      if (items.size() >= kMost) throw TemplateFailure(TemplateFailure::Kind::Limit, "Range too big: at most 100000 numbers");
      items.emplace_back(i);
      if (__builtin_add_overflow(i, by, &i)) break;
    }
    return Value::list(std::move(items));
  }

  static Value dict(const Arguments& arguments) {
    std::vector<std::pair<Value, Value>> items;
    if (!arguments.positional.empty() && arguments.positional[0].dict() != nullptr) items = arguments.positional[0].dict()->items;
    for (const auto& [name, value] : arguments.named) items.emplace_back(Value(name), value);
    return Value::dict(std::move(items));
  }

  Value makeNamespace(const Arguments& arguments) {
    spaces_.push_back(std::make_shared<Namespace>());
    for (const Value& value : arguments.positional) {
      if (value.dict() == nullptr) failRender("namespace() wants a dict or named arguments");
      for (const auto& [key, item] : value.dict()->items) spaces_.back()->members.emplace_back(key.str(), item);
    }
    for (const auto& argument : arguments.named) spaces_.back()->members.push_back(argument);
    return Value(Value::Any(spaces_.back()));
  }

  Value lookUp(const std::string& name) const {
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->outer) {
      const auto found = scope->variables.find(name);
      if (found != scope->variables.end()) return found->second;
    }
    return Value::undefined(fmt::format("'{}' is undefined", name));
  }

  void assign(const std::string& target, Value value) {
    const size_t dot = target.find('.');
    if (dot == std::string::npos) {
      scope_->variables[target] = std::move(value);
      return;
    }
    const Value owner = lookUp(target.substr(0, dot));
    if (owner.space() == nullptr) failRender("cannot assign attribute on non-namespace object");
    const std::string member = target.substr(dot + 1);
    auto& members = owner.space()->members;
    const auto found = std::ranges::find_if(members, [&](const auto& each) { return each.first == member; });
    if (found != members.end()) {
      found->second = std::move(value);
    } else {
      members.emplace_back(member, std::move(value));
    }
  }

  void assignAll(const Statement& statement, const Value& value) {
    if (!statement.unpacks) {
      assign(statement.targets[0], value);
      return;
    }
    const Values items = value.iterate();
    if (items.size() != statement.targets.size()) {
      failRender(fmt::format("{} values for {} names", items.size(), statement.targets.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) assign(statement.targets[i], items[i]);
  }

  Flow run(const Statements& statements) {
    for (const auto& statement : statements) {
      const Flow flow = run(*statement);
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }

  Flow run(const Statement& statement) {
    const Deeper deeper(*this);
    step();
    line_ = statement.line;
    switch (statement.kind) {
      case Statement::Kind::Text:
        write(statement.text);
        break;
      case Statement::Kind::Output:
        write(evaluate(*statement.expressions[0]).str());
        break;
      case Statement::Kind::If:
        return runIf(statement);
      case Statement::Kind::For:
        runFor(statement);
        break;
      case Statement::Kind::Set:
        assignAll(statement, evaluate(*statement.expressions[0]));
        break;
      case Statement::Kind::SetBlock: {
        Value text = captured(statement);
        if (statement.expressions[0] != nullptr) text = filtered(*statement.expressions[0], text);
        assign(statement.targets[0], std::move(text));
        break;
      }
      case Statement::Kind::Macro:
        scope_->variables[statement.text] = macro(statement, statement.text);
        break;
      case Statement::Kind::Call:
        runCall(statement);
        break;
      case Statement::Kind::Filter:
        write(filtered(*statement.expressions[0], captured(statement)).str());
        break;
      case Statement::Kind::With: {
        Values values;
        for (const ExpressionPointer& expression : statement.expressions) values.push_back(evaluate(*expression));
        const Within within(*this, scope_);
        for (size_t i = 0; i < values.size(); ++i) within.scope().variables[statement.targets[i]] = values[i];
        return run(statement.bodies[0]);
      }
      case Statement::Kind::Break:
        return Flow::Break;
      case Statement::Kind::Continue:
        return Flow::Continue;
      case Statement::Kind::Body:
        return run(statement.bodies[0]);
    }
    return Flow::Next;
  }

  Value captured(const Statement& statement) {
    const Within within(*this, scope_);
    return Value(capture(statement.bodies[0]));
  }

  Flow runIf(const Statement& statement) {
    for (size_t i = 0; i < statement.expressions.size(); ++i) {
      if (evaluate(*statement.expressions[i]).truth()) return run(statement.bodies[i]);
    }
    return statement.bodies.size() > statement.expressions.size() ? run(statement.bodies.back()) : Flow::Next;
  }

  void runFor(const Statement& statement) {
    const Value sequence = evaluate(*statement.expressions[0]);
    pay(sequence);
    Values items = sequence.iterate();
    if (statement.expressions[1] != nullptr) {
      Values kept;
      for (const Value& item : items) {
        const Within within(*this, scope_);
        assignAll(statement, item);
        if (evaluate(*statement.expressions[1]).truth()) kept.push_back(item);
      }
      items = std::move(kept);
    }
    if (items.empty() && statement.bodies.size() > 1) {
      const Within within(*this, scope_);
      run(statement.bodies[1]);
      return;
    }
    loops_.push_back(std::make_shared<Loop>());
    const std::shared_ptr<Loop> loop = loops_.back();
    loop->items = &items;
    loop->depth = ++loop_depth_;
    for (size_t i = 0; i < items.size(); ++i) {
      step();
      loop->index = i;
      const Within within(*this, scope_);
      within.scope().variables["loop"] = Value(Value::Any(loop));
      assignAll(statement, items[i]);
      if (run(statement.bodies[0]) == Flow::Break) break;
    }
    --loop_depth_;
    // A function may have kept `loop`; it finds no items then.
    static const Values nothing;
    loop->items = &nothing;
    loop->index = 0;
    constexpr long kHereAndInTheList = 2;
    if (loop.use_count() == kHereAndInTheList && loops_.back() == loop) loops_.pop_back();
  }

  Value macro(const Statement& statement, const std::string& name) {
    ++macros_;
    Scope* home = scope_;
    return Value::function(
        name, [this, &statement, name, home](const Arguments& arguments) { return callMacro(statement, name, home, arguments); });
  }

  Value callMacro(const Statement& statement, const std::string& name, Scope* home, const Arguments& arguments) {
    const Deeper deeper(*this);
    const uint32_t line = line_;
    const Within within(*this, home);
    Scope* inner = &within.scope();
    if (arguments.positional.size() > statement.parameters.size()) {
      failRender(fmt::format("macro '{}' takes not more than {} argument(s)", name, statement.parameters.size()));
    }
    for (size_t i = 0; i < statement.parameters.size(); ++i) {
      const Parameter& parameter = statement.parameters[i];
      const auto named = std::ranges::find_if(arguments.named, [&](const auto& each) { return each.first == parameter.name; });
      if (i < arguments.positional.size()) {
        inner->variables[parameter.name] = arguments.positional[i];
      } else if (named != arguments.named.end()) {
        inner->variables[parameter.name] = named->second;
      } else if (parameter.otherwise != nullptr) {
        inner->variables[parameter.name] = evaluate(*parameter.otherwise);
      } else {
        inner->variables[parameter.name] = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
      }
    }
    for (const auto& [given, value] : arguments.named) {
      const bool known = std::ranges::any_of(statement.parameters, [&](const Parameter& parameter) { return parameter.name == given; });
      if (given == "caller") {
        inner->variables["caller"] = value;
      } else if (!known) {
        failRender(fmt::format("macro '{}' takes no keyword argument '{}'", name, given));
      }
    }
    std::string text = capture(statement.bodies[0]);
    line_ = line;
    return Value(std::move(text));
  }

  void runCall(const Statement& statement) {
    const Expression& call = *statement.expressions[0];
    Arguments arguments = argumentsOf(call);
    arguments.named.emplace_back("caller", macro(statement, "caller"));
    write(callValue(evaluate(*call.parts[0]), arguments).str());
  }

  Arguments argumentsOf(const Expression& call) {
    Arguments arguments;
    for (size_t i = 0; i < call.names.size(); ++i) {
      Value value = evaluate(*call.parts[i + 1]);
      if (call.names[i].empty()) {
        arguments.positional.push_back(std::move(value));
      } else {
        arguments.named.emplace_back(call.names[i], std::move(value));
      }
    }
    return arguments;
  }

  Value callValue(const Value& function, const Arguments& arguments) {
    if (const Undefined* reason = std::get_if<Undefined>(&function.any())) failRender(reason->message);
    if (function.function() == nullptr) failRender(fmt::format("'{}' object is not callable", function.typeName()));
    for (const Value& value : arguments.positional) pay(value);
    Value result = function.function()->call(arguments);
    pay(result);
    return result;
  }

  Value filtered(const Expression& filter, const Value& text) {
    const Value subject = filter.parts[0] == nullptr ? text : filtered(*filter.parts[0], text);
    return applyFilter(filter.name, subject, argumentsOf(filter));
  }

  Value evaluateOrNone(const ExpressionPointer& expression) { return expression == nullptr ? Value() : evaluate(*expression); }

  Value evaluate(const Expression& expression) {
    const Deeper deeper(*this);
    step();
    line_ = expression.line;
    switch (expression.kind) {
      case Expression::Kind::Constant:
        return expression.value;
      case Expression::Kind::Name:
        return lookUp(expression.name);
      case Expression::Kind::Attribute: {
        const Value subject = evaluate(*expression.parts[0]);
        pay(subject);
        return attributeOf(subject, expression.name);
      }
      case Expression::Kind::Item: {
        const Value subject = evaluate(*expression.parts[0]);
        const Value key = evaluate(*expression.parts[1]);
        if (subject.list() == nullptr) pay(subject);
        return itemOf(subject, key);
      }
      case Expression::Kind::Slice: {
        const Value subject = evaluate(*expression.parts[0]);
        pay(subject);
        if (subject.text() != nullptr) step(subject.text()->size());
        const Value start = evaluateOrNone(expression.parts[1]), stop = evaluateOrNone(expression.parts[2]);
        return sliceOf(subject, start, stop, evaluateOrNone(expression.parts[3]));
      }
      case Expression::Kind::Call: {
        const Value function = evaluate(*expression.parts[0]);
        return callValue(function, argumentsOf(expression));
      }
      case Expression::Kind::Filter: {
        const Value subject = evaluate(*expression.parts[0]);
        pay(subject);
        Value result = applyFilter(expression.name, subject, argumentsOf(expression));
        pay(result);
        return result;
      }
      case Expression::Kind::Test: {
        const Value subject = evaluate(*expression.parts[0]);
        return Value(applyTest(expression.name, subject, argumentsOf(expression)) != expression.negated);
      }
      case Expression::Kind::Not:
        return Value(!evaluate(*expression.parts[0]).truth());
      case Expression::Kind::Negative:
        return negate(evaluate(*expression.parts[0]));
      case Expression::Kind::Positive:
        return negate(negate(evaluate(*expression.parts[0])));
      case Expression::Kind::Arithmetic: {
        const Value left = evaluate(*expression.parts[0]);
        Value result = arithmetic(expression.name, left, evaluate(*expression.parts[1]));
        pay(result);
        return result;
      }
      case Expression::Kind::Compare:
        return evaluateCompare(expression);
      case Expression::Kind::And: {
        Value left = evaluate(*expression.parts[0]);
        return left.truth() ? evaluate(*expression.parts[1]) : left;
      }
      case Expression::Kind::Or: {
        Value left = evaluate(*expression.parts[0]);
        return left.truth() ? left : evaluate(*expression.parts[1]);
      }
      case Expression::Kind::Conditional:
        if (evaluate(*expression.parts[0]).truth()) return evaluate(*expression.parts[1]);
        if (expression.parts[2] != nullptr) return evaluate(*expression.parts[2]);
        return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
      case Expression::Kind::List:
      case Expression::Kind::Tuple: {
        Values items;
        for (const ExpressionPointer& part : expression.parts) items.push_back(evaluate(*part));
        return Value::list(std::move(items), expression.kind == Expression::Kind::Tuple);
      }
      case Expression::Kind::Dict:
        return evaluateDict(expression);
      case Expression::Kind::Concat: {
        std::string text;
        for (const ExpressionPointer& part : expression.parts) {
          text += evaluate(*part).str();
          checkLength(text.size());
        }
        step(text.size() / kBytesPerStep);
        return Value(std::move(text));
      }
    }
    return {};
  }

  Value evaluateDict(const Expression& expression) {
    std::vector<std::pair<Value, Value>> items;
    for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
      const Value key = evaluate(*expression.parts[i]);
      if (key.list() != nullptr || key.dict() != nullptr) failRender(fmt::format("unhashable type: '{}'", key.typeName()));
      Value value = evaluate(*expression.parts[i + 1]);
      const auto known = std::ranges::find_if(items, [&](const auto& item) { return equal(item.first, key); });
      if (known != items.end()) {
        known->second = std::move(value);
      } else {
        items.emplace_back(key, std::move(value));
      }
    }
    return Value::dict(std::move(items));
  }

  Value evaluateCompare(const Expression& expression) {
    Value left = evaluate(*expression.parts[0]);
    for (size_t i = 0; i < expression.names.size(); ++i) {
      const std::string& sign = expression.names[i];
      Value right = evaluate(*expression.parts[i + 1]);
      pay(left);
      pay(right);
      bool holds = false;
      if (sign == "==" || sign == "!=") {
        holds = equal(left, right) == (sign == "==");
      } else if (sign == "in" || sign == "not in") {
        holds = contains(right, left) == (sign == "in");
      } else {
        const int order = compare(left, right, sign);
        holds = sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
      }
      if (!holds) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }

  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<std::shared_ptr<Namespace>> spaces_;
  std::vector<std::shared_ptr<Loop>> loops_;
  Scope* scope_ = nullptr;
  std::string out_;
  uint64_t steps_ = 0;
  size_t depth_ = 0, loop_depth_ = 0, macros_ = 0;
  uint32_t line_ = 0;
};

}  // namespace

std::string run(const Statements& statements, const std::map<std::string, Value>& variables) {
  return Interpreter(variables).render(statements);
}

}  // namespace lockstep::text::jinja
