package dev.parley.transport.rabbitmq;

class TunedContractTest extends RabbitMqContract {
    TunedContractTest() {
        super(Wiring.TUNED);
    }
}
