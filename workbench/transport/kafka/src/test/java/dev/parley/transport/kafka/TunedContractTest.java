package dev.parley.transport.kafka;

class TunedContractTest extends KafkaContract {
    TunedContractTest() {
        super(Wiring.TUNED);
    }
}
