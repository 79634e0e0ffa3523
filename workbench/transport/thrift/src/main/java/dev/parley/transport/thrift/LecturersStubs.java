package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.lecturers.Checked;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocol;

/** {@code lecturers.thrift}. */
final class LecturersStubs implements Stubs {
    @Override
    public TProcessor processor(Answering answering) {
        return new dev.parley.transport.thrift.generated.lecturers.Lecturers.Processor<>(new Service(answering));
    }

    @Override
    public Calling client(TProtocol protocol) {
        var client = new dev.parley.transport.thrift.generated.lecturers.Lecturers.Client(protocol);
        return (operation, request) -> switch (operation) {
            case "authenticate" ->
                LecturersConversions.toRecord(
                        client.authenticate(LecturersConversions.toStruct((Credentials) request)));
            case "check" -> LecturersConversions.toRecord(client.check(LecturersConversions.toStruct((Token) request)));
            case "flat" -> LecturersConversions.toRecord(client.flat(LecturersConversions.toStruct((Page) request)));
            case "nested" ->
                LecturersConversions.toRecord(client.nested(LecturersConversions.toStruct((Page) request)));
            case "profile" ->
                LecturersConversions.toRecord(client.profile(LecturersConversions.toStruct((ProfileAsked) request)));
            case "named" ->
                LecturersConversions.toRecord(client.named(LecturersConversions.toStruct((NameAsked) request)));
            default -> throw new CallException(Code.NOT_FOUND, "no operation " + operation + " in lecturers.thrift");
        };
    }

    @Override
    public TBase<?, ?> toStruct(Record value) {
        return switch (value) {
            case Checked checked -> LecturersConversions.toStruct(checked);
            case Credentials credentials -> LecturersConversions.toStruct(credentials);
            case NameAsked nameAsked -> LecturersConversions.toStruct(nameAsked);
            case NestedProfiles nestedProfiles -> LecturersConversions.toStruct(nestedProfiles);
            case Page page -> LecturersConversions.toStruct(page);
            case Profile profile -> LecturersConversions.toStruct(profile);
            case ProfileAsked profileAsked -> LecturersConversions.toStruct(profileAsked);
            case Profiles profiles -> LecturersConversions.toStruct(profiles);
            case Token token -> LecturersConversions.toStruct(token);
            default ->
                throw new CallException(
                        Code.NOT_FOUND, value.getClass().getName() + " has no struct in lecturers.thrift");
        };
    }

    /** The interface's implementation, as a user of Thrift writes it. */
    private record Service(Answering answering)
            implements dev.parley.transport.thrift.generated.lecturers.Lecturers.Iface {
        @Override
        public dev.parley.transport.thrift.generated.lecturers.Token authenticate(
                dev.parley.transport.thrift.generated.lecturers.Credentials request) throws TException {
            return LecturersConversions.toStruct(
                    answering.answer(Lecturers.AUTHENTICATE, LecturersConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.lecturers.Checked check(
                dev.parley.transport.thrift.generated.lecturers.Token request) throws TException {
            return LecturersConversions.toStruct(
                    answering.answer(Lecturers.CHECK, LecturersConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.lecturers.Profiles flat(
                dev.parley.transport.thrift.generated.lecturers.Page request) throws TException {
            return LecturersConversions.toStruct(
                    answering.answer(Lecturers.FLAT, LecturersConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.lecturers.NestedProfiles nested(
                dev.parley.transport.thrift.generated.lecturers.Page request) throws TException {
            return LecturersConversions.toStruct(
                    answering.answer(Lecturers.NESTED, LecturersConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.lecturers.Profile profile(
                dev.parley.transport.thrift.generated.lecturers.ProfileAsked request) throws TException {
            return LecturersConversions.toStruct(
                    answering.answer(Lecturers.PROFILE, LecturersConversions.toRecord(request)));
        }

        @Override
        public dev.parley.transport.thrift.generated.lecturers.Profiles named(
                dev.parley.transport.thrift.generated.lecturers.NameAsked request) throws TException {
            return LecturersConversions.toStruct(
                    answering.answer(Lecturers.NAMED, LecturersConversions.toRecord(request)));
        }
    }
}
