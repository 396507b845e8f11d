// Must be rejected: a function's own static with a constructor, and with a destructor run at exit.
struct Lamp {
  Lamp();
  ~Lamp();
  int lit;
};
extern "C" volatile int switch_register;
volatile int switch_register;
Lamp::Lamp() : lit(switch_register) {}
Lamp::~Lamp() { switch_register = 0; }
extern "C" int rejected() {
  static Lamp lamp;
  return lamp.lit;
}
