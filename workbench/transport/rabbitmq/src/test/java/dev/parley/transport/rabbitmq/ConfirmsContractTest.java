package dev.parley.transport.rabbitmq;

class ConfirmsContractTest extends RabbitMqContract {
    ConfirmsContractTest() {
        super(Wiring.CONFIRMS);
    }
}
