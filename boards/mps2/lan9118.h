#pragma once
// SMSC's LAN9118 Ethernet controller, polled. Register names are those of its data sheet.

#include <cstdint>

#include "espalier/hal/serial/carrier.h"
#include "hal/serial/ethernet.h"

extern "C" {
extern char ethernet_registers[];  // their address, from the board's linker script
}

namespace espalier {

class Lan9118 final : public Carrier {
 public:
  // Enables both directions. From then on the interrupt is pending while a frame waits.
  void begin();
  // Clears the pending interrupt.
  void clear_interrupt();

  [[nodiscard]] std::uint32_t mtu() const override { return kEthernetMtu; }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override;
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override;

 private:
  [[nodiscard]] volatile std::uint32_t& at(std::uint32_t offset) const {
    return *reinterpret_cast<volatile std::uint32_t*>(ethernet_registers + offset);
  }
  // Reads a register for the effect of reading it.
  void drop(std::uint32_t offset) const { [[maybe_unused]] const std::uint32_t word = at(offset); }
  [[nodiscard]] std::uint32_t mac_read(std::uint32_t which) const;
  void mac_write(std::uint32_t which, std::uint32_t value);
  void put(const std::uint8_t* bytes, std::uint32_t size);
  void get(std::uint8_t* bytes, std::uint32_t size);
};

}  // namespace espalier
