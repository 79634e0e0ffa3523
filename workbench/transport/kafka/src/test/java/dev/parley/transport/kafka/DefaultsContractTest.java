package dev.parley.transport.kafka;

class DefaultsContractTest extends KafkaContract {
    DefaultsContractTest() {
        super(Wiring.DEFAULTS);
    }
}
