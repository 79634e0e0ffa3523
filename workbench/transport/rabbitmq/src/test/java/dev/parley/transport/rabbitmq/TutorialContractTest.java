package dev.parley.transport.rabbitmq;

class TutorialContractTest extends RabbitMqContract {
    TutorialContractTest() {
        super(Wiring.TUTORIAL);
    }
}
